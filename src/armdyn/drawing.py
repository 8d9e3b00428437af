"""Pictures of an arm: its frames and links in three dimensions, by plotly."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from armdyn.chain import Chain
from armdyn.errors import InputError


def import_plotly(module: str) -> Any:
    """A module of plotly, which is large and therefore an extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError('engine="plotly" needs an extra; install it with: pip install "armdyn[plot]"') from error


LINK, JOINT, TOOL = "#8a919e", "#3b76d1", ("#c4475a", "#3d9a6b", "#3b76d1")


def skeleton(chain: Chain, link_poses: np.ndarray, pose: np.ndarray | None) -> np.ndarray:
    """(points, 3): base, then for every joint the end of its common normal and its frame's origin, then the tool.

    Where a branch begins, a row of NaN interrupts the line, which starts again at the fork.
    """
    base = np.eye(4)
    base[:3, :3], base[:3, 3] = [[float(x) for x in row] for row in chain.base.R.rows], [float(x) for x in chain.base.p]
    points = [base[:3, 3]]
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        frame = link_poses[parent] if parent >= 0 else base
        if parent != i - 1:
            points += [np.full(3, np.nan), frame[:3, 3]]
        foot = frame[:3, 3] + float(joint.shift) * frame[:3, 2]
        normal = float(joint.turn.cos) * frame[:3, 0] + float(joint.turn.sin) * frame[:3, 1]
        points += [*([foot] if joint.forked else []), foot + float(joint.b) * normal, link_poses[i][:3, 3]]
    return np.array([*points, *([] if pose is None else [pose[:3, 3]])])


def figure(chain: Chain, link_poses: np.ndarray, poses: Any, title: str) -> Any:
    """A plotly figure of one configuration, or of several, the earlier ones fainter; `poses` of the tool, or None."""
    go = import_plotly("plotly.graph_objects")

    out = go.Figure()
    count = len(link_poses)
    for k, links in enumerate(link_poses):
        pose = None if poses is None else poses[k]
        faint = 1.0 if count == 1 else 0.15 + 0.85 * k / (count - 1)
        last = k == count - 1
        x, y, z = skeleton(chain, links, pose).T
        out.add_scatter3d(
            x=x,
            y=y,
            z=z,
            mode="lines",
            line={"width": 9, "color": LINK},
            opacity=faint,
            hoverinfo="skip",
            showlegend=False,
        )
        x, y, z = links[:, :3, 3].T
        out.add_scatter3d(
            x=x, y=y, z=z, mode="markers", marker={"size": 5, "color": JOINT}, opacity=faint, text=chain.joint_names,
            hovertemplate="%{text}<br>%{x:.3f}, %{y:.3f}, %{z:.3f} m<extra></extra>", showlegend=False,
        )  # fmt: skip
        if pose is None or not last:
            continue
        for axis, color in enumerate(TOOL):
            ends = np.array([pose[:3, 3], pose[:3, 3] + 0.1 * pose[:3, axis]])
            line = dict(zip("xyz", ends.T, strict=True))
            out.add_scatter3d(**line, mode="lines", line={"width": 5, "color": color}, name=f"tool {'xyz'[axis]}")
    axes = {f"{name}axis": {"title": {"text": f"{name} [m]"}} for name in "xyz"}
    out.update_layout(title=title, scene={"aspectmode": "data", **axes}, template="plotly_white")
    return out
