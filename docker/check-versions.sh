#!/usr/bin/env bash
# check-versions.sh [VERSION...]: does what a user does on the official images of OpenSearch, with the plugin, by each
# engine, and prints a row of the table in docs/operations.md for each. It needs Docker, curl and `make test`'s
# environment; PYTHON names another one.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$here/.venv/bin/python}
engines=(lucene faiss faiss-fp16 faiss-on-disk)
if [ $# -eq 0 ]; then set -- 3.3.2 3.4.0 3.5.0 3.6.0 3.7.0 3.8.0 3.9.0; fi

work=$(mktemp --directory)
container=langshift-check-$$
trap 'docker rm --force --volumes "$container" > /dev/null 2>&1 || true; rm -rf "$work"' EXIT

(cd "$work" && "$(dirname "$python")/langshift" plugin build > /dev/null)
zips=("$work"/langshift-[0-9]*.zip)
chmod 755 "$work"
chmod 644 "${zips[0]}"

failed=0
for version in "$@"; do
  image=opensearchproject/opensearch:$version
  if ! docker pull --quiet "$image" > /dev/null; then
    echo "There is no image $image." >&2
    failed=1
    continue
  fi
  # A version that refuses the plugin starts without it.
  docker run --detach --name "$container" --publish 127.0.0.1::9200 --volume "${zips[0]}:/langshift.zip:ro" \
    --env discovery.type=single-node --env DISABLE_SECURITY_PLUGIN=true --env DISABLE_INSTALL_DEMO_CONFIG=true \
    --entrypoint /bin/bash "$image" -c \
    'bin/opensearch-plugin install --batch file:///langshift.zip; exec ./opensearch-docker-entrypoint.sh opensearch' \
    > /dev/null
  address=$(docker port "$container" 9200/tcp | head -n 1)
  if curl --silent --fail --output /dev/null --retry 90 --retry-delay 2 --retry-all-errors "http://$address/"; then
    OPENSEARCH_URL=http://$address "$python" "$here/tests/support/server_checks.py" \
      "$version official image" "${engines[@]}" || failed=1
  else
    echo "OpenSearch $version does not start:" >&2
    docker logs --tail 20 "$container" >&2
    failed=1
  fi
  docker rm --force --volumes "$container" > /dev/null
done
exit "$failed"
