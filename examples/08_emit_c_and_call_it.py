"""Generate C for a controller, compile it, call it, and compare the results."""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import armdyn

out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
arm = armdyn.load("ur5")
for path in arm.emit_c(out, ("inverse_dynamics", "gravity_load")):
    print(f"wrote {path.name}: {path.stat().st_size} bytes")

compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
if compiler is None:
    sys.exit(print("no C compiler here: the files are written, nothing is called"))

library = out / "ur5.so"
command = [compiler, "-std=c99", "-O2", "-shared", "-fPIC", str(out / "ur5.c"), "-lm", "-o", str(library)]
subprocess.run(command, check=True)

double_p = ctypes.POINTER(ctypes.c_double)
inverse_dynamics = ctypes.CDLL(str(library)).ur5_inverse_dynamics
inverse_dynamics.argtypes, inverse_dynamics.restype = [double_p] * 4, None

q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, arm.n))
tau = np.empty(arm.n)
inverse_dynamics(*(x.ctypes.data_as(double_p) for x in (q, qd, qdd, tau)))
print("C     ", np.round(tau, 6))
print("Python", np.round(arm.inverse_dynamics(q, qd, qdd), 6))
assert np.allclose(tau, arm.inverse_dynamics(q, qd, qdd), rtol=1e-12, atol=1e-12)
