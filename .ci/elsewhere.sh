# What .ci/emulated and .ci/musl share: a folder with another platform's Python, the build for it, and the tests there.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$(basename "$0")
cache=${BCAST_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bcast-ci}/$name
root=$cache/root # a Debian of which some packages are unpacked and none is installed
host=$cache/host/bin/python
python=$root/usr/bin/python3.13
export CC="$cache/bin/cc" CXX="$cache/bin/cc" # which compiles both
# The longest are left out: four short axes and more, and each second itemsize. The checks in C have all itemsizes.
slow="short_axes[4 or short_axes[5 or each_leaf_writes or -2] or -8] or -24]"
quick=(tests/test_{examples,leaves,kernel}.py -k "not ($slow)")

absent() { echo "$1: nothing is tested" && exit; }

needs() {
    for tool; do
        command -v "$tool" >/dev/null || absent "no $tool at hand"
    done
}

unpacked() { # Whether these very scripts have made all that is there.
    made=$(cat ".ci/$name" .ci/elsewhere.sh | cksum)
    [ "$made" = "$(cat "$cache/made" 2>/dev/null)" ]
}

unpack() { # PACKAGES [OPTIONS of mmdebstrap]
    rm -rf "$cache"
    mkdir -p "$cache/bin"
    mmdebstrap -q --variant=extract --include="$@" trixie "$root"
}

install() { # PLATFORM [PACKAGES]: wheels for the tests, and beside them what compiles
    python3 -m venv "$cache/host"
    "$host" -m pip install -q "cython>=3.1" "numpy>=2.0" "setuptools>=77"
    "$host" -m pip install -q --no-compile --target "$cache/site" --platform "$1" --python-version 3.13 \
        --only-binary=:all: "${@:2}" hypothesis numpy pytest pytest-xdist threadpoolctl
    echo "$made" >"$cache/made"
}

compiler() { # COMMAND: the tests, too, find it as cc. CPython's configure must not hear of glibc's folders.
    printf '#!/bin/sh\n[ "$1" = --print-multiarch ] || exec %s "$@" -O1\n' "$*" >"$CC"
    chmod +x "$CC"
}

build() { # PLATFORM: what was compiled before and has not changed since is kept
    rm -rf "$cache/lib" "$cache/bcast/src"
    mkdir -p "$cache/bcast"
    cp -r LICENSE README.md pyproject.toml setup.py src "$cache/bcast"
    (cd "$cache/bcast" && SETUPTOOLS_EXT_SUFFIX=.cpython-313-$1.so "$host" setup.py -q build \
        --build-lib "$cache/lib" --build-temp "$cache/temp")
}

check() { # [OPTIONS of pytest]: by default the quick tests
    export PATH="$cache/bin:$PATH" PYTHONPATH="$cache/lib:$cache/site" PYTHONPYCACHEPREFIX="$cache/compiled"
    unset PYTHONDONTWRITEBYTECODE # to compile all modules anew in each process takes minutes where it is emulated
    run "$python" -m pytest -W error -p no:cacheprovider -n auto "${@:-${quick[@]}}"
}
