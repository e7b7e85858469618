#!/bin/sh
# Finds a Chromium for the PDF, or installs Debian's when we may; else says in one line what to install.
set -u
for name in "${RDMALAB_CHROME:-}" chromium chromium-browser google-chrome google-chrome-stable microsoft-edge brave-browser; do
    [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium for the PDF ..."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0
fi
echo "no Chromium found: reports will have no PDF; install one (sudo apt-get install chromium) or set RDMALAB_CHROME" >&2
exit 0
