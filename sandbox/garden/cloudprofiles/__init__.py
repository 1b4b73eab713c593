"""CloudProfiles as data: one YAML file per provider."""
