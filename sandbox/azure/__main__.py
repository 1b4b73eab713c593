"""Serve Azure."""

from sandbox.azure.app import BROKEN, make_app
from sandbox.clouds import serve

if __name__ == "__main__":
    serve("azure", BROKEN, make_app, tls=True)
