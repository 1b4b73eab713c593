"""A small world on one machine: Temporal, clouds and a Garden, so that all of Trellis can run without an account.

Knows the vendors' APIs and nothing of Trellis itself: its adapters talk to it with the vendors' SDKs over HTTP.
"""
