#!/bin/sh
# Makes the virtual environment. Called by make; says in one line what is missing.
set -eu
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "rdmalab needs Python 3.11 or newer as '$PYTHON'; name another one: make PYTHON=/path/to/python3 demo" >&2
    exit 3
fi
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing python3-venv ..."
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    else
        echo "Python's venv module is missing; install it: sudo apt-get install python3-venv" >&2
        exit 3
    fi
fi
[ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
echo "installing rdmalab into $VENV (some minutes the first time) ..."
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" 2>/dev/null ||
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable .
