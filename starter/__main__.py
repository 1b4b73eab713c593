"""`python -m starter` is `trellis`."""

from starter.cli import main

main()
