"""Wiring: settings, clients and the worker process."""
