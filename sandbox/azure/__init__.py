"""Azure on one machine: Entra ID's tokens, resource groups and Microsoft.Network, as the vendor's SDK sees them.

`python -m sandbox.azure --port P --state-dir DIR` serves HTTPS, since azure-core sends no token over anything else.
Clients are pointed at it by the vendor's own means: `AZURE_AUTHORITY_HOST` (azure-identity, with instance discovery
off, as for every private cloud), the SDK's `base_url` with `credential_scopes`, and `REQUESTS_CA_BUNDLE` set to
`DIR/azure.ca.crt` (https://learn.microsoft.com/cli/azure/use-azure-cli-successfully-troubleshooting#work-behind-a-proxy).
The vendor's command line is pointed at it by `AZURE_CORE_INSTANCE_DISCOVERY=false`, `az cloud register --name sandbox
--endpoint-resource-manager URL`, `az cloud set --name sandbox` and `az login --service-principal`.
A service principal comes from `POST /sandbox/subscriptions/{subscription}/principals`. Durations, quotas and the clock:
`/sandbox/settings` (see `sandbox.clouds`).
"""
