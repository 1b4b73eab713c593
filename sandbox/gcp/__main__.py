"""Serve Compute Engine."""

from sandbox.clouds import serve
from sandbox.gcp.app import BROKEN, make_app

if __name__ == "__main__":
    serve("gcp", BROKEN, make_app)
