"""A small AWS: moto's EC2 in this process, behind a guard that does what EC2 does and moto does not.

`python -m sandbox.aws --port 0 --state-dir DIR` serves it on 127.0.0.1. `AWS_ENDPOINT_URL` and any pair of keys are all
that boto3 or the `aws` command needs. What the guard adds is in `rules`, one function per EC2 action; how the cloud
survives `kill -9` is in `world` and `journal`. STS, service quotas and everything else moto offers answer as well, but
only EC2 is kept.

Control: `GET` and `PUT /sandbox/settings` (see `settings`), `GET /moto-api/` as ready probe, `POST /moto-api/reset`.
"""
