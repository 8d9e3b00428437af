"""Draws frames.svg, chain.svg, scalars.svg and phase_plane.svg of images/: python docs/scripts/drawings.py."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

IMAGES = Path(__file__).parents[1] / "images"
INK, FAINT, RED, BLUE, GREEN, ORANGE = "#222", "#9aa1ac", "#c4475a", "#3b76d1", "#3d9a6b", "#d9822b"
TURN, RISE = np.radians(-28), np.radians(22)


class Drawing:
    """Lines and words in three dimensions, seen from the side and a little above; y of the paper points down."""

    def __init__(self, width: int, height: int, origin: tuple[float, float], scale: float, turn: float = TURN) -> None:
        self.width, self.height, self.origin, self.scale, self.turn = width, height, origin, scale, turn
        self.parts: list[str] = []

    def at(self, p: np.ndarray) -> tuple[float, float]:
        x, y, z = p
        u = x * np.cos(self.turn) - y * np.sin(self.turn)
        depth = x * np.sin(self.turn) + y * np.cos(self.turn)
        return self.origin[0] + self.scale * u, self.origin[1] - self.scale * (z * np.cos(RISE) + depth * np.sin(RISE))

    def line(
        self, a: np.ndarray, b: np.ndarray, colour: str = INK, width: float = 2, dash: str = "", end: str = ""
    ) -> None:
        (x1, y1), (x2, y2) = self.at(a), self.at(b)
        more = (f' stroke-dasharray="{dash}"' if dash else "") + (f' marker-end="url(#{end})"' if end else "")
        self.parts.append(
            f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}" fill="none"{more}/>'
        )

    def arc(self, centre: np.ndarray, a: np.ndarray, b: np.ndarray, colour: str, radius: float) -> None:
        """Part of a circle about `centre` from direction a to direction b (unit vectors), with an arrow's head."""
        angle = np.arccos(np.clip(a @ b, -1, 1))
        side = (b - (a @ b) * a) / np.sin(angle)
        points = [self.at(centre + radius * (np.cos(t) * a + np.sin(t) * side)) for t in np.linspace(0, angle, 24)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(
            f'<path d="{path}" stroke="{colour}" stroke-width="1.8" fill="none" marker-end="url(#{colour[1:]})"/>'
        )

    def dot(self, p: np.ndarray, colour: str = INK) -> None:
        x, y = self.at(p)
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')

    def word(self, p: np.ndarray, text: str, dx: float = 0, dy: float = 0, colour: str = INK, size: int = 17) -> None:
        x, y = self.at(p)
        self.parts.append(f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" fill="{colour}" font-size="{size}">{text}</text>')

    def write(self, name: str, title: str) -> None:
        heads = "".join(
            f'<marker id="{c[1:]}" viewBox="0 0 10 10" refX="9" refY="5" '
            f'markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 1L10 5L0 9z" fill="{c}"/></marker>'
            for c in (INK, RED, BLUE, GREEN, ORANGE)
        )
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="Georgia, serif" font-style="italic" role="img"><title>{title}</title><defs>{heads}</defs>'
            f'<rect width="100%" height="100%" fill="white" rx="6"/>{"".join(self.parts)}</svg>\n'
        )
        (IMAGES / name).write_text(text, encoding="utf-8")


def sub(letter: str, index: str) -> str:
    return f'{letter}<tspan font-size="12" dy="4">{index}</tspan><tspan dy="-4">&#8203;</tspan>'


def axes(
    d: Drawing, origin: np.ndarray, R: np.ndarray, index: str, length: float, places: list[tuple[float, float]]
) -> None:
    for k, (name, colour) in enumerate((("x", RED), ("y", GREEN), ("z", BLUE))):
        tip = origin + length * R[:, k]
        d.line(origin, tip, colour, 2.4, end=colour[1:])
        d.word(tip, sub(name, index), *places[k], colour)
    d.dot(origin)


def frames() -> None:
    """Frame i in frame i-1: b along x, β about x, d along z, θ about z."""
    d = Drawing(760, 400, (120, 265), 120)
    beta, theta, b, height = np.radians(-62), np.radians(48), 2.7, 1.35
    zero, X, Z = np.zeros(3), np.eye(3)[0], np.eye(3)[2]
    foot = b * X
    z = np.array([0, -np.sin(beta), np.cos(beta)])
    y = np.cross(z, X)
    top = foot + height * z
    x = np.cos(theta) * X + np.sin(theta) * y
    d.line(-0.6 * Z, 2.1 * Z, FAINT, 1.4, "7 5")
    d.line(foot - 0.7 * z, foot + 2.7 * z, FAINT, 1.4, "7 5")
    d.line(zero, foot, INK, 2)
    d.line(foot, foot + 1.1 * Z, FAINT, 1.4, "3 4")
    d.line(top, top + 1.15 * X, FAINT, 1.4, "3 4")
    d.line(foot, top, INK, 3.2)
    axes(d, zero, np.eye(3), "i−1", 0.95, [(-8, 24), (4, -4), (8, 6)])
    axes(d, top, np.column_stack([x, np.cross(z, x), z]), "i", 0.95, [(8, 6), (-22, -6), (4, -8)])
    d.arc(foot, Z, z, ORANGE, 0.55)
    d.word(foot + 0.55 * (Z + z) / np.linalg.norm(Z + z), sub("β", "i"), 6, -8, ORANGE)
    d.arc(top, X, x, ORANGE, 0.75)
    d.word(top + 0.75 * (X + x) / np.linalg.norm(X + x), sub("θ", "i"), 12, 6, ORANGE)
    d.word(foot / 2, sub("b", "i"), 22, 30)
    d.word((foot + top) / 2, sub("d", "i"), 4, 26)
    d.dot(foot)
    d.word(-0.6 * Z, f"axis of joint {'i−1'}", -60, 22, FAINT, 14)
    d.word(foot + 2.7 * z, "axis of joint i", -40, -8, FAINT, 14)
    d.write("frames.svg", "Frame i in frame i-1: b and beta along and about x, d and theta along and about z")


def body(d: Drawing, a: np.ndarray, b: np.ndarray) -> None:
    (x1, y1), (x2, y2) = d.at(a), d.at(b)
    d.parts.append(
        f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#dfe5ee" stroke-width="26" stroke-linecap="round"/>'
    )


def chain() -> None:
    """Composite bodies and what is carried where."""
    d = Drawing(760, 230, (60, 130), 100, turn=0.0)
    places = [np.array([1.55 * k, 0, 0.35 * np.sin(1.3 * k)]) for k in range(5)]
    for a, b in pairwise(places):
        body(d, a, b)
    for k, p in enumerate(places[:4]):
        d.dot(p, BLUE)
        d.word(p, str(k + 1) if k < 3 else "n", -5, 34, BLUE)
    (x1, y1), (x2, y2) = d.at(places[2]), d.at(places[4])
    d.parts.append(
        f'<ellipse cx="{(x1 + x2) / 2:.0f}" cy="{(y1 + y2) / 2:.0f}" rx="{(x2 - x1) / 2 + 36:.0f}" ry="62" fill="none" '
        f'stroke="{ORANGE}" stroke-width="1.8" stroke-dasharray="6 5"/>'
    )
    d.word((places[2] + places[4]) / 2, "composite body 3: links 3 to n as one", -120, -76, ORANGE, 15)
    d.line(places[1] + [0.95, 0, -0.8], [0.1, 0, -0.8], RED, 2, end=RED[1:])
    d.word([1.4, 0, -0.8], "wrenches are carried inwards", -110, 22, RED, 15)
    d.write("chain.svg", "A chain with its composite body 3 and the wrench carried inwards")


def scalars() -> None:
    """One algorithm, four kinds of numbers."""
    rows = (
        ("float", "the value: readable, slow, the judge", INK),
        ("Tally", "the value, and every operation as the paper counts it", ORANGE),
        ("Node", "a graph: machine code, C; counted as compiled", BLUE),
        ("Dual", "the value and its exact derivatives", GREEN),
    )
    d = Drawing(760, 250, (0, 0), 1)
    d.parts.append('<g font-family="system-ui, sans-serif" font-style="normal">')
    d.parts.append(f'<rect x="20" y="80" width="205" height="88" rx="8" fill="#f2f5fa" stroke="{FAINT}"/>')
    d.parts.append('<text x="122" y="116" text-anchor="middle" font-size="15" font-weight="600">an algorithm</text>')
    d.parts.append('<text x="122" y="142" text-anchor="middle" font-size="13">written once, beside its paper</text>')
    for k, (name, meaning, colour) in enumerate(rows):
        y = 40 + 56 * k
        d.parts.append(
            f'<path d="M225 124C265 124 265 {y} 300 {y}" stroke="{colour}" stroke-width="2" fill="none" '
            f'marker-end="url(#{colour[1:]})"/>'
            f'<text x="310" y="{y + 5}" font-size="15" font-weight="600" fill="{colour}">{name}'
            f'</text><text x="372" y="{y + 5}" font-size="14" fill="{INK}">{meaning}</text>'
        )
    d.parts.append("</g>")
    d.write("scalars.svg", "The type of the scalar decides what running an algorithm gives")


def phase_plane() -> None:
    """The speed of a UR5 with 3 kg along its path, and what limits it (docs/tutorials/time_optimal.md)."""
    import armdyn

    way = [[0, -1.5, 1.5, 0, 0.5, 0], [0.6, -1.0, 1.0, -0.4, 0.8, 0.5], [1.2, -1.4, 1.6, 0.3, 0.2, -0.4]]
    motion = armdyn.time_optimal(armdyn.load("ur5"), way, payload=3.0)
    top = 1.1 * motion.speed.max()
    d = Drawing(760, 330, (0, 0), 1)
    d.parts.append('<g font-family="system-ui, sans-serif" font-style="normal" font-size="13">')
    d.parts.append(f'<path d="M60 20V280H740" stroke="{FAINT}" fill="none"/>')
    d.parts.append(f'<text x="60" y="14" fill="{INK}">path speed [1/s]</text>')
    d.parts.append(f'<text x="400" y="318" text-anchor="middle" fill="{INK}">path parameter s</text>')
    for x in np.linspace(0, 1, 6):
        d.parts.append(f'<text x="{60 + 680 * x:.0f}" y="298" text-anchor="middle" fill="{INK}">{x:g}</text>')
    for v in range(int(top) + 1):
        d.parts.append(f'<text x="52" y="{284 - 250 * v / top:.0f}" text-anchor="end" fill="{INK}">{v}</text>')
    lines = (
        (motion.ceiling, GREEN, "the limits leave an acceleration", 3.5),
        (motion.fastest, ORANGE, "the end can still be reached", 2.2),
        (motion.speed, BLUE, "the motion", 1.8),
    )
    for k, (y, colour, name, width) in enumerate(lines):
        heights = 280 - 250 * np.minimum(y, 1.05 * top) / top
        path = "M" + "L".join(f"{60 + 680 * a:.1f} {b:.1f}" for a, b in zip(motion.s, heights, strict=True))
        d.parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="{width}" fill="none"/>')
        d.parts.append(f'<text x="90" y="{215 + 20 * k}" fill="{colour}">{name}</text>')
    d.parts.append("</g>")
    d.write("phase_plane.svg", "Speed along the path of a UR5 with 3 kg, and its limits")


def pick_and_place() -> None:
    """How much of the motors two motions use: time-optimal, and by accelerations (docs/tutorials/time_optimal.md)."""
    import armdyn
    from armdyn.motion import MotionLimits

    arm = armdyn.load("ur5")
    way = [[-0.6, -1.0, 1.75, -2.32, -1.57, 0.0], [-0.4, -1.35, 1.7, -1.92, -1.57, 0.2],
           [0.8, -1.4, 1.65, -1.82, -1.57, 1.0], [1.0, -1.0, 1.75, -2.32, -1.57, 1.2]]  # fmt: skip
    loaded = arm.with_payload(3.0)
    limits = MotionLimits(torque=np.full(6, 1e6), acceleration=5.0)
    motions = (
        (armdyn.time_optimal(arm, way, payload=3.0), BLUE, "time-optimal"),
        (armdyn.time_optimal(arm, way, limits=limits), ORANGE, "limits of speed and 5 rad/s²"),
    )
    longest = max(motion.duration for motion, *_ in motions)
    d = Drawing(760, 330, (0, 0), 1)
    d.parts.append('<g font-family="system-ui, sans-serif" font-style="normal" font-size="13">')
    d.parts.append(f'<path d="M60 20V280H740" stroke="{FAINT}" fill="none"/>')
    d.parts.append(f'<text x="60" y="14" fill="{INK}">largest part of a joint\'s torque or speed that is used</text>')
    d.parts.append(f'<text x="400" y="318" text-anchor="middle" fill="{INK}">time [s]</text>')
    for k in range(int(longest / 0.25) + 1):
        x = 60 + 680 * 0.25 * k / longest
        d.parts.append(f'<text x="{x:.0f}" y="298" text-anchor="middle" fill="{INK}">{0.25 * k:g}</text>')
    for share in (0, 0.5, 1):
        d.parts.append(f'<text x="52" y="{284 - 240 * share:.0f}" text-anchor="end" fill="{INK}">{share:.0%}</text>')
    for k, (motion, colour, name) in enumerate(motions):
        tau = loaded.inverse_dynamics(motion.q, motion.qd, motion.qdd, friction=True)
        used = np.maximum(np.abs(tau) / arm.effort_limits, np.abs(motion.qd) / arm.velocity_limits).max(axis=1)
        points = zip(60 + 680 * motion.t / longest, 280 - 240 * used, strict=True)
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        d.parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        d.parts.append(f'<text x="420" y="{215 + 20 * k}" fill="{colour}">{name}: {motion.duration:.2f} s</text>')
    d.parts.append("</g>")
    d.write("pick_and_place.svg", "What two motions of a UR5 with 3 kg use of its motors")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    frames()
    chain()
    scalars()
    phase_plane()
    pick_and_place()
