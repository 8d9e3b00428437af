"""A hash of every kind of simulated trajectory, to compare before and after a change of the code.

`python benchmarks/trajectory_hashes.py before.json` writes them; with a second file the two are compared. Hashes differ
between processors (vector widths and fused operations), so they are compared on one machine only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.simulation import (
    PD,
    Actuators,
    ComputedTorque,
    Digital,
    Feedforward,
    PDGravity,
    Sampled,
    Trajectory,
    fourier,
    quintic,
    simulate,
)  # fmt: skip

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from random_trees import TreeKind, random_tree

FIXED = ("RK4", "RK5", "AB4", "ARK4", "semi_implicit_euler")
ADAPTIVE = ("DOP853", "RK45", "LSODA", "Radau")
ARRAYS = ("t", "q", "qd", "qdd", "tau", "energy", "ends")


def digest(run: Trajectory) -> str:
    """A hash of all numbers and words of a trajectory."""
    total = hashlib.sha256()
    for name in ARRAYS:
        total.update(np.ascontiguousarray(getattr(run, name)).tobytes())
    words = [run.status, run.message, run.method, run.statuses.tolist(), run.messages.tolist()]
    total.update(json.dumps(words).encode())
    for law, signals in sorted(run.signals.items()):
        for name, values in sorted(signals.items()):
            total.update(f"{law} {name}".encode() + np.ascontiguousarray(values).tobytes())
    return total.hexdigest()[:16]


def cases() -> Iterator[tuple[str, Callable[[], Trajectory]]]:
    """Names, and functions that simulate."""
    rng = np.random.default_rng(7)
    puma, planar, panda = (armdyn.load(name) for name in ("puma560", "planar3", "panda"))
    flying = armdyn.Arm("flying", random_tree(TreeKind(joints=3, fork=0.5, floating=True, special=0.8), 3))
    q6, q3, q7 = np.array([0.0, -0.4, 0.0, 0.3, 0.5, 0.0]), np.array([0.3, -0.2, 0.4]), panda.rest
    many = q6 + rng.uniform(-0.1, 0.1, (11, 6))
    load = puma.gravity_load(q6)
    swing = fourier(q6, 0.1 * rng.normal(size=(2, 6)), 0.1 * rng.normal(size=(2, 6)), 0.7)
    move = quintic(q6, q6 + 0.3, 0.1)
    samples = Sampled(np.linspace(0, 0.1, 7), rng.normal(size=(7, 6)), "held")
    lines = Sampled(np.linspace(0, 0.1, 7), rng.normal(size=(11, 7, 6)), "linear")

    def pull(t: float, q: np.ndarray, qd: np.ndarray) -> Any:
        return 3 * np.sin(20 * t) - 0.5 * qd

    drives: dict[str, Any] = {
        "none": None, "constant": load, "held": samples, "lanes": lines, "pd": PD(q6 + 0.1, 50.0, 5.0),
        "pdgravity": PDGravity(q6 + 0.1, 80.0, 9.0), "computed": ComputedTorque(move), "forward": Feedforward(swing),
        "function": pull,
    }  # fmt: skip
    plain: dict[str, dict[str, Any]] = {
        "": {}, "free": {"friction": False, "limits": False}, "stops": {"limits": 0.4},
        "wrench": {"tool_wrench": [3.0, 0, -2, 0, 0.1, 0]}, "saturated": {"saturate": True},
    }  # fmt: skip
    for method in FIXED:
        for name, torque in drives.items():
            if method == "ARK4" and name == "function":
                continue
            for setting, options in plain.items():
                for batch, start in (("one", q6), ("many", many)):
                    if name == "lanes" and batch == "one":
                        continue
                    yield (
                        f"puma {method} {name} {setting} {batch}",
                        lambda start=start, torque=torque, method=method, options=options: simulate(
                            puma, start, torque=torque, duration=0.03, method=method, **options
                        ),
                    )
    for method in ADAPTIVE:
        for name in ("none", "held", "pd", "function"):
            yield (
                f"puma {method} {name}",
                lambda torque=drives[name], method=method: simulate(
                    puma, q6, torque=torque, duration=0.02, method=method, rtol=1e-6, atol=1e-8
                ),
            )
    motors = {
        "period": Actuators(period=0.004, delay=0.002), "rate": Actuators(period=0.002, rate=2000.0),
        "encoder": Actuators(encoder=1e-4, position_noise=1e-5, velocity_noise=1e-3, torque_noise=0.1, seed=3),
    }  # fmt: skip
    for name, actuators in motors.items():
        for drive in ("pd", "pdgravity", "function", "computed"):
            for batch, start in (("one", q6), ("many", many)):
                yield (
                    f"puma motors {name} {drive} {batch}",
                    lambda start=start, torque=drives[drive], actuators=actuators: simulate(
                        puma, start, torque=torque, duration=0.03, actuators=actuators
                    ),
                )
    laws = [armdyn.controller(puma, name) for name in ("computed_torque", "momentum_observer")]
    yield (
        "puma digital",
        lambda: simulate(
            puma, q6, torque=Digital(laws[0], move, laws[1:]), duration=0.05, actuators=Actuators(period=0.002)
        ),
    )
    yield "puma fall to a limit", lambda: simulate(puma, q6 + np.eye(6)[2], duration=2.0)
    yield "puma lanes to limits", lambda: simulate(puma, many, 3 * many, times=[0, 0.4, 0.8, 1.1])
    yield "puma uneven times", lambda: simulate(puma, q6, times=[0.1, 0.1003, 0.2, 0.21, 0.3], step=3e-3)
    yield "panda stiff auto", lambda: simulate(panda, q7, torque=PDGravity(q7 + 0.2, 100, 20), duration=0.1)
    yield (
        "panda stiff RK4",
        lambda: simulate(panda, q7, torque=PDGravity(q7 + 0.2, 100, 20), duration=0.1, method="RK4"),
    )
    yield (
        "panda auto step",
        lambda: simulate(panda, q7, torque=PDGravity(q7 + 0.2, 100, 20), duration=0.1, method="RK4", step="auto"),
    )
    yield "planar fall", lambda: simulate(planar, q3, duration=0.3)
    yield "planar function", lambda: simulate(planar, q3, torque=lambda t, q, qd: [0.1, 0.2, -0.1], duration=0.05)
    base = flying.rest
    for method in FIXED:
        yield f"flying {method}", lambda method=method: simulate(flying, base, duration=0.05, method=method, limits=0.2)
    loose = armdyn.Uncertain(
        puma, link_masses=armdyn.Normal(1, 0.05), friction=armdyn.Normal(1, 0.1), joint_offsets=armdyn.Normal(0, 1e-3)
    )
    plants = loose.sample(9).plants
    for method in FIXED:
        yield (
            f"plants {method}",
            lambda method=method: simulate(puma, q6, torque=drives["pd"], duration=0.02, method=method, plants=plants),
        )


def main() -> int:
    """Write, or compare."""
    hashes = {name: digest(make()) for name, make in cases()}
    target = Path(sys.argv[1])
    if not target.exists():
        target.write_text(json.dumps(hashes, indent=1), encoding="utf-8")
        print(f"wrote {len(hashes)} hashes")
        return 0
    before = json.loads(target.read_text(encoding="utf-8"))
    different = [name for name in hashes if before.get(name) != hashes[name]]
    print(f"{len(hashes) - len(different)} of {len(hashes)} equal")
    print("\n".join(different))
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
