"""How to log in, as the garden's Secret has it.

The keys and their rules are Gardener's (gardener-extension-provider-openstack, pkg/openstack/credentials.go).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from keystoneauth1.identity import v3
from keystoneauth1.plugin import BaseAuthPlugin
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from domain.errors import Code, TrellisError

__all__ = ["LogIn"]

_AUTH_URL = "OS_AUTH_URL"


class LogIn(BaseModel):
    """The keys that count; others are Gardener's business."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    domain: str = Field(alias="domainName", min_length=1)
    project: str = Field(alias="tenantName", min_length=1)
    username: str = ""
    password: str = Field("", repr=False)
    credential_id: str = Field("", alias="applicationCredentialID")
    credential_name: str = Field("", alias="applicationCredentialName")
    credential_secret: str = Field("", alias="applicationCredentialSecret", repr=False)
    auth_url: str = Field("", alias="authURL")
    # PEM; whoever verifies Keystone's and Neutron's certificates.
    ca_certificates: str = Field("", alias="caCert")
    insecure: str = ""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.password and self.credential_secret:
            raise ValueError("give password or applicationCredentialSecret, not both")
        if self.password and not self.username:
            raise ValueError("password needs username")
        if not self.password and not self.credential_secret:
            raise ValueError("password or applicationCredentialSecret is missing")
        if self.credential_secret and not self.credential_id and not (self.username and self.credential_name):
            raise ValueError(
                "applicationCredentialSecret needs applicationCredentialID, or applicationCredentialName and username"
            )
        return self

    @classmethod
    def read(cls, secret: Mapping[str, str], region: str) -> Self:
        """The Secret's data, checked.

        Raises:
            TrellisError: `forbidden` where something is missing, `invalid` where nobody says where Keystone is.
        """
        try:
            log_in = cls.model_validate(dict(secret))
        except ValidationError as error:
            # Never the values: they are the secret.
            raise TrellisError(
                Code.FORBIDDEN,
                f"log in to OpenStack in {region}: {'; '.join(_sentence(each) for each in error.errors())}",
                "mend the Secret behind the CredentialsBinding",
            ) from None
        url = log_in.auth_url or os.environ.get(_AUTH_URL, "")
        if not url:
            raise TrellisError(
                Code.INVALID,
                f"log in to OpenStack in {region}: nobody says where Keystone is",
                f"put authURL into the Secret behind the CredentialsBinding, or set {_AUTH_URL} for the worker",
            )
        return log_in.model_copy(update={"auth_url": url})

    def plugin(self) -> BaseAuthPlugin:
        """What logs a session in."""
        if self.password:
            return v3.Password(
                self.auth_url,
                username=self.username,
                user_domain_name=self.domain,
                password=self.password,
                project_name=self.project,
                project_domain_name=self.domain,
            )
        if self.credential_id:
            return v3.ApplicationCredential(
                self.auth_url,
                application_credential_secret=self.credential_secret,
                application_credential_id=self.credential_id,
            )
        return v3.ApplicationCredential(
            self.auth_url,
            application_credential_secret=self.credential_secret,
            application_credential_name=self.credential_name,
            username=self.username,
            user_domain_name=self.domain,
        )

    @property
    def is_insecure(self) -> bool:
        """Whether certificates are not verified."""
        return self.insecure.strip().lower() == "true"


def _sentence(error: Any) -> str:
    key = ".".join(map(str, error["loc"]))
    return f"{key} is missing" if key else str(error["msg"]).removeprefix("Value error, ")
