"""Ways in: the Python client and the `trellis` command line."""
