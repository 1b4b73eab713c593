#!/bin/sh
# The namespace that Trellis lives in. Its workers register the search attributes by themselves.
set -eu

namespace=${TEMPORAL_NAMESPACE:-default}
temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1 \
    || temporal operator namespace create --namespace "$namespace" --retention 30d
