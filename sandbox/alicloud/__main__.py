"""Serve Alibaba Cloud."""

from sandbox.alicloud.app import BROKEN, make_app
from sandbox.clouds import serve

if __name__ == "__main__":
    serve("alicloud", BROKEN, make_app)
