#!/usr/bin/env bash
# Measures the graphics card of this machine, which needs CMake, a C++ compiler and the CUDA toolkit, but no network.
# Usage: bash bench/gpu/run.sh [--minutes 9] [step…]. A later call goes on where this one has stopped.
set -euo pipefail
cd "$(dirname "$0")"
work=${MODELMOUNT_GPU_WORK:-/tmp/modelmount-gpu}
packed=${MODELMOUNT_GPU_PACKED:-$PWD/packed}

unpack() { # file folder
  mkdir -p "$2"
  # Python reads xz archives without the program xz.
  tar -xJf "$1" -C "$2" 2> /dev/null || python3 -m tarfile -e "$1" "$2"
}

if [ ! -e "$work/unpacked" ]; then
  unpack "$packed/node.tar.xz" "$work/node"
  unpack "$packed/tree.tar.xz" "$work/tree"
  unpack "$packed/llama.cpp.tar.xz" "$work/tree/node_modules/node-llama-cpp/llama/llama.cpp"
  cp "$packed/tokenizer.gguf" "$work/"
  chmod +x "$work/node/bin/node"
  touch "$work/unpacked"
fi
export PATH="$work/node/bin:$PATH:/usr/local/cuda/bin" MODELMOUNT_GPU_WORK="$work"
exec node "$work/tree/bench/gpu/steps.mjs" "$@"
