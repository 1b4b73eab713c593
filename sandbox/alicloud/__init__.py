"""Alibaba Cloud's networks on one machine, as the vendor's SDK sees them.

`python -m sandbox.alicloud --port P --state-dir DIR`. One address answers for four products, told apart by the
version that every request names: VPC 2016-04-28, VpcPeer 2022-01-01, STS 2015-04-01, and of ECS 2014-05-26 security
groups and instances. Access keys come from `POST /sandbox/keys`; durations, quotas, reads that see nothing yet, and
the clock: `/sandbox/settings` (see `sandbox.clouds`). Verbs of `operation_seconds_by_verb` are the actions' names, and
`Settling`: how long what was removed from a VPC still keeps the VPC from being deleted.
"""
