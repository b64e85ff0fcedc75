#!/usr/bin/env bash
# Makes what the containers need and doesn't exist yet: deploy/.env, the secrets, the folder of wheels.
set -euo pipefail
cd "$(dirname "$0")"

secret() { # NAME VALUE
  [ -s "secrets/$1" ] && return
  printf '%s' "$2" >"secrets/$1"
  echo "made deploy/secrets/$1"
}
random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

mkdir -p wheels secrets
# Others on this host can't enter the folder; the containers' user must be able to read the files mounted from it.
chmod 700 secrets
[ -e .env ] || cp .env.example .env
secret redis_password "$(random)"
secret token "$(random)"
secret redis_url "redis://:$(cat secrets/redis_password)@redis:6379/0"
secret llm_api_key none
secret grafana_password "$(random)"
chmod 444 secrets/*
