"""Compute Engine v1 on one machine: networks and what is in them, as the vendor's SDK and plain HTTP see them.

`python -m sandbox.gcp --port P --state-dir DIR`. Point a client at it by `client_options.api_endpoint`, with anonymous
credentials, or with a key from `POST /sandbox/projects/{project}/keys` (a service account's JSON file, whose
`token_uri` is this server's). Durations, faults, quotas and the clock: `/sandbox/settings` (see `sandbox.clouds`).
"""
