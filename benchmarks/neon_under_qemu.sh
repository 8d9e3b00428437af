#!/usr/bin/env bash
# The kernels for AArch64 (NEON) on an x86-64 Linux machine, executed by qemu, must give the bits of this processor.
#
#   benchmarks/neon_under_qemu.sh [FOLDER]        # needs Debian or Ubuntu, root for apt-get, about 400 MB
#
# It takes the distribution's Python for arm64 and the AArch64 wheels of NumPy and llvmlite, none of which is installed
# on the machine itself; only qemu-user-static is. The processor here must have fused multiply-adds (AVX2 and later).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mkdir -p "${1:-$root/out/neon}" && cd "${1:-$root/out/neon}" && pwd)
python=${PYTHON:-$root/.venv/bin/python}
apt-get install -y -qq --no-install-recommends qemu-user-static >/dev/null
dpkg --add-architecture arm64
apt-get update -qq
version=$(apt-cache show python3-minimal | sed -n 's/^Version: \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
mkdir -p "$work/debs" "$work/system" "$work/wheels"
packages="python$version-minimal libpython$version-minimal libpython$version-stdlib libc6 libgcc-s1 libstdc++6 zlib1g"
packages="$packages libexpat1 libffi8 libssl3 libcrypt1 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1"
(cd "$work/debs" && for name in $packages; do apt-get download -qq "$name:arm64"; done)
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/system"; done
"$python" -m pip install -q --target "$work/wheels" --python-version "$version" --only-binary=:all: --upgrade \
  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --implementation cp numpy llvmlite scipy
export PYTHONPATH="$root/src:$work/wheels" ARMDYN_CACHE=off
run=(qemu-aarch64-static -L "$work/system" "$work/system/usr/bin/python$version")
"${run[@]}" "$root/benchmarks/same_bits.py" >"$work/neon.txt"
PYTHONPATH="$root/src" "$python" "$root/benchmarks/same_bits.py" >"$work/here.txt"
diff "$work/here.txt" "$work/neon.txt" && echo "$(wc -l <"$work/neon.txt") kernels: the same bits on AArch64"
