"""Let an arm fall, watch its energy, and write an animation to look at in a browser."""

import sys
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

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

fall.plot().write_html(out / "fall.html")  # positions, velocities, torques, energy

# The animation: a line through base, joints and tool, 25 pictures a second.
rows = slice(None, None, 40)
q = fall.q[rows]
base, tool = np.zeros((len(q), 1, 3)), arm.pose(q)[:, None, :3, 3]
points = np.concatenate([base, arm.link_poses(q)[..., :3, 3], tool], axis=1)


def picture(xyz: np.ndarray) -> go.Scatter3d:
    x, y, z = xyz.T
    return go.Scatter3d(x=x, y=y, z=z, mode="lines+markers", line={"width": 10}, marker={"size": 4})


axis = {"range": [-1.0, 1.0]}
play = {"label": "play", "method": "animate", "args": [None, {"frame": {"duration": 40}, "fromcurrent": True}]}
figure = go.Figure(picture(points[0]), frames=[go.Frame(data=[picture(xyz)]) for xyz in points])
figure.update_layout(scene={"xaxis": axis, "yaxis": axis, "zaxis": axis, "aspectmode": "cube"})
figure.update_layout(title=f"{arm.name} falls", updatemenus=[{"type": "buttons", "buttons": [play]}])
figure.write_html(out / "animation.html")
print(f"wrote {out / 'fall.html'} and {out / 'animation.html'}")
