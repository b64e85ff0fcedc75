#!/usr/bin/env bash
# Builds every image without an image registry: base images from Debian packages (debootstrap, docker import), wheels
# downloaded by the host's pip, then `pip install --no-index` inside the build. Needs root, debootstrap and Docker.
set -euo pipefail
cd "$(dirname "$0")/.."

tag=${IMAGE_TAG:-local}
services=${SERVICES:-store inference gate evolver trainer simulator}
suite=${DEBIAN_SUITE:-bookworm}
base=${BASE_IMAGE:-videotree-base:$suite}
redis=${REDIS_IMAGE:-videotree-redis:$suite}

bootstrap() { # IMAGE PACKAGES
  docker image inspect "$1" >/dev/null 2>&1 && return
  command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
  local root
  root=$(mktemp -d)
  echo "making $1 from Debian $suite: $2"
  if ! debootstrap --variant=minbase --include="$2" "$suite" "$root" >"$root.log" 2>&1; then
    tail -n 20 "$root.log" >&2
    exit 1
  fi
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}
  tar -C "$root" -c . | docker import - "$1" >/dev/null
  rm -rf "$root" "$root.log"
}

deploy/prepare.sh
bootstrap "$base" python3,python3-venv,ca-certificates
bootstrap "$redis" redis-server

wanted="$(docker image inspect --format '{{.Id}}' "$base") $(sha256sum <requirements.lock)"
if [ "$(cat deploy/wheels/.downloaded-for 2>/dev/null)" != "$wanted" ]; then
  echo "downloading wheels for the Python of $base"
  rm -f deploy/wheels/*.whl deploy/wheels/.downloaded-for
  .venv/bin/python deploy/download_wheels.py "$base" deploy/wheels
  echo "$wanted" >deploy/wheels/.downloaded-for
fi

for service in $services; do
  echo "building videotree-$service:$tag"
  case $service in
    store) probe=127.0.0.1:50051 ;;
    inference) probe=127.0.0.1:50052 ;;
    gate) probe=127.0.0.1:50053 ;;
    evolver) probe=127.0.0.1:50054 ;;
    simulator) probe=http://127.0.0.1:8060/v1/models ;;
    *) probe= ;;
  esac
  docker build --quiet --file deploy/Dockerfile --build-arg BASE_IMAGE="$base" --build-arg SERVICE="$service" \
    --build-arg PROBE="$probe" --tag "videotree-$service:$tag" . >/dev/null
done

sed -i "s|^BASE_IMAGE=.*|BASE_IMAGE=$base|; s|^REDIS_IMAGE=.*|REDIS_IMAGE=$redis|" deploy/.env
echo "done; deploy/.env names $base and $redis"
