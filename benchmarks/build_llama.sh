#!/usr/bin/env bash
# Build llama-bench and llama.cpp's libraries once, from the source that llama-cpp-python ships,
# and put llama-cpp-python itself into a virtual environment without building it a second time.
#
#   benchmarks/build_llama.sh [VENV]     prints the folder of libraries and llama-bench
#
# Kept in $TOKCAST_LLAMA_CACHE, or ~/.cache/tokcast-ci: about 300 MB while building, 40 MB after.
# For the tests: LLAMA_BENCH=<folder>/llama-bench LLAMA_CPP_LIB_PATH=<folder>, where memory-oracle
# lies too.
set -euo pipefail
VERSION=0.3.36
cd "$(dirname "$0")/.."
VENV="${1:-${VENV:-.venv}}"
JOBS="${JOBS:-$(nproc)}"
CACHE="${TOKCAST_LLAMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tokcast-ci}"
mkdir -p "$CACHE" 2>/dev/null && [ -w "$CACHE" ] || CACHE="$PWD/build/llama-cache"
mkdir -p "$CACHE"
BIN="$CACHE/llama-$VERSION-$(uname -m)"
SDIST="$CACHE/llama_cpp_python-$VERSION.tar.gz"

# One build at a time; a second caller waits and then finds it done.
exec 9>"$CACHE/lock"
flock 9 2>/dev/null || true

if [ ! -f "$SDIST" ]; then
    "$VENV/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python \
        --dest "$CACHE" "llama-cpp-python==$VERSION" >&2
fi
# Built for the instructions of the processor it was built on: another one gets its own build.
STAMP="$( (grep -m1 -E '^(flags|Features)' /proc/cpuinfo || uname -mp) 2>/dev/null | cksum)"
if [ ! -x "$BIN/llama-bench" ] || [ "$(cat "$BIN/stamp" 2>/dev/null)" != "$STAMP" ]; then
    WORK="$CACHE/build-$VERSION"
    mkdir -p "$WORK"
    tar -xzf "$SDIST" -C "$WORK" --strip-components=1 --skip-old-files
    GENERATOR=(); command -v ninja >/dev/null && GENERATOR=(-G Ninja)
    # Libraries find each other where they are moved to.
    ORIGIN='$ORIGIN'; [ "$(uname)" = Darwin ] && ORIGIN=@loader_path
    cmake "${GENERATOR[@]}" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH="$ORIGIN" -S "$WORK/vendor/llama.cpp" -B "$WORK/out" -DCMAKE_BUILD_TYPE=Release \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DGGML_NATIVE=ON >&2
    cmake --build "$WORK/out" --target llama-bench --parallel "$JOBS" >&2
    rm -rf "$BIN.new" "$BIN"
    mkdir "$BIN.new"
    cp -a "$WORK"/out/bin/llama-bench "$WORK"/out/bin/*.so* "$BIN.new/" 2>/dev/null ||
        cp -a "$WORK"/out/bin/llama-bench "$WORK"/out/bin/*.dylib "$BIN.new/"
    echo "$STAMP" > "$BIN.new/stamp"
    mv "$BIN.new" "$BIN"
    rm -rf "$WORK"
fi
# What tells where llama.cpp would put a model, for the tests of placement and memory.
ORACLE="$BIN/memory-oracle"
if [ ! -x "$ORACLE" ] || [ benchmarks/memory_oracle.cpp -nt "$ORACLE" ]; then
    WORK="$CACHE/headers-$VERSION"
    rm -rf "$WORK"
    mkdir -p "$WORK"
    tar -xzf "$SDIST" -C "$WORK" --strip-components=1
    L="$WORK/vendor/llama.cpp" ORIGIN='$ORIGIN'
    [ "$(uname)" = Darwin ] && ORIGIN=@loader_path
    "${CXX:-c++}" -std=c++17 -O1 -I"$L/common" -I"$L/include" -I"$L/ggml/include" -I"$L/ggml/src" \
        -o "$ORACLE.new" benchmarks/memory_oracle.cpp \
        "$BIN"/libllama-common.* "$BIN"/libllama.* "$BIN"/libggml*.* -Wl,-rpath,"$ORIGIN" >&2
    mv "$ORACLE.new" "$ORACLE"
    rm -rf "$WORK"
fi
if ! "$VENV/bin/python" -c "import importlib.metadata as m, sys; sys.exit(m.version('llama-cpp-python') != '$VERSION')" 2>/dev/null; then
    CMAKE_ARGS="-DLLAMA_BUILD=OFF -DLLAVA_BUILD=OFF" \
        "$VENV/bin/pip" install --quiet --no-cache-dir "$SDIST" >&2
fi
echo "$BIN"
