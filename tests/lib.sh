# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Shared by tests/run and examples/run: where the tree is, what it needs, how it is built.

# shellcheck disable=SC2034 # used by the scripts that source this
es_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

es_say() { printf '%s\n' "$*"; }
es_die() { printf '%s\n' "$*" >&2; exit 1; }

# es_need COMMAND-OR-FILE=PACKAGE ...: installs the Debian packages whose command or file is missing.
# As another user than root, or without apt, says what to install and fails.
es_need() {
    local pair missing=()
    for pair in "$@"; do
        case "${pair%%=*}" in
        /*) compgen -G "${pair%%=*}" >/dev/null || missing+=("${pair#*=}") ;;
        *) command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}") ;;
        esac
    done
    [ ${#missing[@]} -eq 0 ] && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        es_die "missing: ${missing[*]}. On Debian or Ubuntu: sudo apt-get install ${missing[*]}"
    fi
    es_say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" ||
        { apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; }; } >"$log" 2>&1 ||
        { tail -5 "$log" >&2; es_die "could not install ${missing[*]}"; }
    rm -f "$log"
}

es_need_to_build() {
    es_need cc=gcc ninja=ninja-build pkg-config=pkg-config python3=python3 meson=meson
}

# The folder of the CUDA Toolkit, where meson.build looks too; empty if there is none.
es_cuda() {
    local root
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr; do
        if [ -n "$root" ] && [ -e "$root/include/cuda.h" ]; then
            printf '%s' "$root"
            return
        fi
    done
}

# es_build FOLDER [meson setup argument ...]: quiet unless it fails. A folder that was set up with other
# arguments, or before a package was there, is set up again.
es_build() {
    local dir=$1 log again=()
    shift
    log=$(mktemp)
    [ -e "$dir/build.ninja" ] && again=(--reconfigure)
    if [ ! -e "$dir/build.ninja" ] || { [ $# -gt 0 ] && [ "$*" != "$(cat "$dir/es_arguments" 2>/dev/null)" ]; }; then
        meson setup "${again[@]}" "$dir" "$es_root" "$@" >"$log" 2>&1 || { tail -8 "$log" >&2; es_die "meson setup failed"; }
        printf '%s' "$*" >"$dir/es_arguments"
    fi
    ninja -C "$dir" >"$log" 2>&1 || { grep -E 'error|FAILED|undefined' "$log" | head -20 >&2; es_die "the build failed: ninja -C $dir"; }
    rm -f "$log"
}
