"""Names: which the user may give, and which Trellis makes out of them.

Gardener deletes by name prefix on Azure and GCP, so no shoot name may be a prefix of another: shoot names are made
here, all of one length. The user's name is a label (gardener-extension-provider-azure
`pkg/controller/infrastructure/infraflow/ensurer.go`, gardener-extension-provider-gcp `infraflow/ensure.go`).
"""

from __future__ import annotations

import base64
import hashlib
import re

# A DNS label without double hyphens; those are kept for names that Trellis makes.
NAME_PATTERN = r"^[a-z](?:-?[a-z0-9])*$"
NAME_MAX = 40
_OWN_PREFIX = "own--"
_SHOOT_LENGTH = 10
_SHORT_HASH = 8


def check_name(value: str) -> str:
    """A name as the user may give it; raises ValueError that says what is wrong and how to mend it."""
    if not value:
        raise ValueError("a name must not be empty")
    if len(value) > NAME_MAX:
        raise ValueError(f"a name has at most {NAME_MAX} characters; this one has {len(value)}")
    if not re.fullmatch(NAME_PATTERN, value):
        raise ValueError(
            f"{value!r} is not a name: use lower-case letters, digits and single hyphens, "
            "begin with a letter and end with a letter or digit"
        )
    return value


def own_vpc(cluster: str) -> str:
    """The name of the VPC that a cluster without a named VPC gets; no user can name another cluster's so."""
    return f"{_OWN_PREFIX}{cluster}"


def is_own_vpc(name: str) -> bool:
    """Whether a VPC was made for one cluster alone."""
    return name.startswith(_OWN_PREFIX)


def cluster_workflow_id(tenant: str, cluster: str) -> str:
    """The id of the workflow that is the cluster."""
    return f"cluster/{tenant}/{cluster}"


def vpc_workflow_id(tenant: str, vpc: str) -> str:
    """The id of the workflow that is the VPC."""
    return f"vpc/{tenant}/{vpc}"


def shoot_name(tenant: str, cluster: str) -> str:
    """The shoot's name: always ten characters, the same for the same cluster, so that a look-up needs no record.

    Project (at most 10) and shoot name together stay within Gardener's 21 characters.
    """
    digest = hashlib.sha256(f"{tenant}/{cluster}".encode()).digest()
    return "t" + base64.b32encode(digest).decode().lower()[: _SHOOT_LENGTH - 1]


def technical_id(namespace: str, shoot: str) -> str:
    """The shoot's name in the clouds: the prefix of what Gardener makes for it (gardener, ComputeTechnicalID)."""
    return f"shoot--{namespace.removeprefix('garden-')}--{shoot}"


def bounded(name: str, limit: int) -> str:
    """`name` itself where it fits into `limit` characters, else cut and made unique by a hash of the whole."""
    if len(name) <= limit:
        return name
    suffix = hashlib.sha256(name.encode()).hexdigest()[:_SHORT_HASH]
    return f"{name[: limit - _SHORT_HASH - 1].rstrip('-')}-{suffix}"
