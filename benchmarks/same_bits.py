"""The bits of many kernels, one line each, to compare processors: run it on both and compare the output.

    python benchmarks/same_bits.py > here.txt

`benchmarks/neon_under_qemu.sh` does that for AArch64 on any x86-64 Linux machine.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np

import armdyn

ARMS = ("planar3", "scara", "puma560", "panda", "stanford")
QUANTITIES = (
    *("inertia_matrix", "bias", "gravity_load", "inverse_dynamics", "forward_dynamics"),
    *("jacobian", "dh_poses", "inertia_inverse"),
)
ROWS = 37  # whole blocks of every vector width, and a rest


def main() -> None:
    """Print arm, quantity and the first digits of the hash of its bits."""
    for name in ARMS:
        arm = armdyn.load(name)
        for quantity in QUANTITIES:
            kernel = arm.kernel(quantity)
            rng = np.random.default_rng(len(quantity))
            arrays = [rng.uniform(-2, 2, (ROWS, *shape)) for _, shape in kernel.assembly.inputs]
            rows = np.ascontiguousarray(kernel(*arrays))
            alone = np.ascontiguousarray([kernel(*(a[k] for a in arrays)) for k in range(ROWS)])
            if rows.tobytes() != alone.tobytes():
                raise SystemExit(f"{name} {quantity}: single calls give other bits than the batch")
            print(name, quantity, hashlib.sha256(rows.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    sys.exit(main())
