"""Simulate a falling arm, check its energy, and write an animation and plots."""

import sys
from pathlib import Path

import numpy as np

import armdyn

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
out.mkdir(parents=True, exist_ok=True)

arm = armdyn.load("puma560")
q0 = np.array([0.0, -0.4, 0.0, 0.3, 0.5, 0.0])
fall = armdyn.simulate(arm, q0, duration=2.0, friction=False, limits=False)
drift = np.max(np.abs(fall.energy - fall.energy[0]))
print(fall)
print(f"energy {fall.energy[0]:.3f} J, largest change in 2 s of free fall {drift:.1e} J")
assert drift < 1e-6

fall.animate().save(out / "animation.html")  # a self-contained page; in a notebook, fall.animate() shows it
fall.plot().save(out / "fall.html")  # charts of positions, velocities, torques and energy
print(f"wrote {out / 'animation.html'} and {out / 'fall.html'}")
