"""What is done: one file per concern, each a class whose clients are injected. These modules import no SDK."""
