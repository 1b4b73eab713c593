"""The Garden: its API, the shoots in it, and what each provider wants to be told about them."""
