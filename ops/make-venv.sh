#!/usr/bin/env bash
# Make a virtual environment with the first Python that is new enough. An environment that works is left as it is.
set -euo pipefail
venv=${1:?where}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [[ -x "$venv/bin/python" ]] && new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if new_enough "$name"; then
        python=$name
        break
    fi
done
if [[ -z "${python:-}" ]]; then
    echo "memoryos-pipeline needs Python 3.11 or newer; found $(python3 --version 2>/dev/null || echo none)." >&2
    echo "Install one, or name it: make setup PYTHON=/path/to/python3" >&2
    exit 1
fi

rm -rf "$venv"
if "$python" -m venv "$venv" >/dev/null 2>&1; then
    exit 0
fi
# Some distributions split ensurepip off; a pip outside can fill the environment as well.
rm -rf "$venv"
if "$python" -m venv --without-pip "$venv" && "$python" -m pip --python "$venv/bin/python" install --quiet pip; then
    exit 0
fi
echo "$python cannot make a virtual environment: it has neither ensurepip nor pip (on Debian: python3-venv)." >&2
exit 1
