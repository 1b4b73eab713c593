"""A garden: Gardener's API, and a controller that makes in the cloud what Gardener makes for a shoot."""
