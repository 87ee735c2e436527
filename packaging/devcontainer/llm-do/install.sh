#!/bin/sh
# A feature of dev containers (https://containers.dev/implementors/features): run as root while the image is built, with the feature's option
# in VERSION. Installs that version of the npm package, else what `make devcontainer` has put beside this file.
set -eu
umask 022
cd -P "$(dirname "$0")"

fail() { echo "llm-do: $*" >&2; exit 1; }

has_node() {
  node -e 'const [major, minor] = process.versions.node.split(".").map(Number)
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null
}

# That of the distribution; older releases have too old a one.
install_node() {
  if command -v apt-get >/dev/null; then
    apt-get update && apt-get install --yes --no-install-recommends nodejs npm
  elif command -v apk >/dev/null; then
    apk add --no-cache nodejs npm
  fi
}

has_node || install_node
has_node || fail 'node 20.19 or newer is needed: take an image that has it, or name the feature that installs it in overrideFeatureInstallOrder'

if [ -n "${VERSION-}" ]; then
  npm install --global --ignore-scripts --no-audit --no-fund "llm-do-exec@$VERSION"
elif [ -d built ]; then
  cp -R built/. /
else
  fail 'option version is empty, and nothing is built here (make devcontainer)'
fi
llm-do --version
llm-do profiles >/dev/null # by node, which the line above does not start
