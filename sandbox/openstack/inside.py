"""Run by the environment's own Python: makes the empty databases and keys of Keystone or Neutron.

`python inside.py keystone CONFIG PASSWORD REGION` or `python inside.py neutron CONFIG URL`
"""

# These are not installed where the rest of the sandbox runs.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import os
import sys


def _keystone(config: str, password: str, region: str) -> None:
    from keystone.cmd import cli

    owner = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
    bootstrap = ["--bootstrap-password", password, "--bootstrap-region-id", region]
    for command in (["db_sync"], ["fernet_setup", *owner], ["credential_setup", *owner], ["bootstrap", *bootstrap]):
        cli.CONF.reset()  # of the command before
        cli.main(["keystone-manage", "--config-file", config, *command])


def _neutron(config: str, url: str) -> None:
    from neutron.db import network_ip_availability_db  # noqa: F401 - a view that `head` does not know
    from neutron.db.migration import cli
    from neutron.db.migration.models import head
    from sqlalchemy import create_engine

    # Neutron's migrations alter constraints, which SQLite cannot: its tables are made as they are today.
    head.get_metadata().create_all(create_engine(url))
    sys.argv = ["neutron-db-manage", "--config-file", config, "stamp", "heads"]
    cli.main()


if __name__ == "__main__":
    service, *arguments = sys.argv[1:]
    if service == "keystone":
        _keystone(*arguments)
    else:
        _neutron(*arguments)
