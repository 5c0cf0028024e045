#!/bin/sh
# Lets Docker Compose itself read docker-compose.cluster.yml, where it is installed; no engine is needed for that.
# tests/deploy checks what the file says, everywhere.
set -eu

cd "$(dirname "$0")/.."
if docker compose version >/dev/null 2>&1; then
    docker compose --file docker-compose.cluster.yml --profile '*' config --quiet
    echo "docker-compose.cluster.yml: Docker Compose reads it"
else
    echo "docker-compose.cluster.yml: Docker Compose is not here to read it; tests/deploy checks what it says"
fi
