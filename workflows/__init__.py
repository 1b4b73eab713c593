"""What is decided: deterministic, one file per workflow."""
