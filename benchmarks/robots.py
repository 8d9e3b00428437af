"""Every robot of the installed packages against Pinocchio: `python benchmarks/robots.py [--page FILE] [NAME...]`.

Loads every URDF file that example-robot-data, rtb-data and pybullet bring, the base standing and floating, and compares
inertia matrix, gravity load, bias, inverse and forward dynamics and the derivatives of both, regressor times
parameters, centroidal momentum, poses and Jacobians of the tips with Pinocchio's, joint by joint by name, with snap=0;
inertia matrix and bias with MuJoCo's as far as MuJoCo takes the file. Exits with 1 where one is off by more than 1e-9.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from armdyn.errors import ArmdynError
from robot_judge import judge, mujoco_says, package_robots

TOLERANCE = 1e-9
HEAD = (
    "| robot | package | n | N | mimic | tips | floats in the file | largest difference | with a floating base "
    "| derivatives | MuJoCo |"
)
REFUSED = "–"  # by MuJoCo


def row(file: Path) -> tuple[str, float]:
    """One robot: a line of the table, and the largest difference."""
    worst = []
    for floating in (None, True):
        judged = judge(file, floating)
        worst.append(judged.disagreement())
    arm = judge(file).arm
    mimics = sum(joint.mimic is not None for joint in arm.chain.joints)
    shown = []
    slopes = [{name: found.pop(name) for name in list(found) if "derivatives" in name} for found in worst]
    for found in worst:
        quantity = max(found, key=lambda name: found[name])
        shown.append(f"{found[quantity]:.0e} ({quantity})")
    worst += slopes
    shown.append(f"{max(max(found.values()) for found in slopes):.0e}")
    second = mujoco(file)
    shown.append(f"{second:.0e}" if second is not None else REFUSED)
    numbers = (arm.n, arm.chain.bodies, mimics or "", len(arm.chain.tips), "yes" if arm.floating else "")
    cells = [file.stem, _package(file), *numbers, *shown]
    return f"| {' | '.join(map(str, cells))} |", max(second or 0.0, *(max(found.values()) for found in worst))


def mujoco(file: Path) -> float | None:
    """The largest difference from MuJoCo; None where it refuses the file."""
    try:
        return max(mujoco_says(file).values())
    except ValueError:  # what its compiler says about a model
        return None


def _package(file: Path) -> str:
    known = {"example-robot-data": "example-robot-data", "rtbdata": "rtb-data", "pybullet_data": "pybullet"}
    return next(known[part] for part in file.parts if part in known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these files, by name")
    parser.add_argument("--page", type=Path, help="write the table as a page of the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, refused, failures, start = [HEAD, "|---" * 11 + "|"], [], 0, time.perf_counter()
    for file in package_robots():
        if arguments.names and file.stem not in arguments.names:
            continue
        try:
            line, error = row(file)
        except ArmdynError as reason:
            refused.append((file, str(reason).splitlines()[0]))
            continue
        failures += error > TOLERANCE
        lines.append(line)
        print(line, "" if error <= TOLERANCE else "   <-- differs", flush=True)
    still = [(file, reason) for file, reason in refused if "no moving joint" in reason]
    others = [(file, reason) for file, reason in refused if "no moving joint" not in reason]
    count = Counter(_package(file) for file, _ in still)
    closing = [
        "",
        f"{len(lines) - 2} files load. {len(still)} have no moving joint and are refused for it "
        f"({', '.join(f'{k} of {name}' for name, k in count.items())}). The others are malformed:",
        "",
        *(f"- `{file.name}`: {reason}" for file, reason in others),
    ]
    print("\n".join(closing), f"\n{failures} differ; {time.perf_counter() - start:.0f} s")
    if arguments.page:
        arguments.page.write_text("\n".join([*PAGE, *lines, *closing]) + "\n")
    return 1 if failures else 0


PAGE = [
    "# Robots",
    "",
    "Every URDF file of the packages example-robot-data, rtb-data and pybullet (only one of pybullet's thousand",
    "random objects), loaded as a whole robot and compared with Pinocchio: inertia matrix, gravity load, bias,",
    "inverse and forward dynamics, regressor times parameters, centroidal momentum, poses and Jacobians of the tips,",
    "at a random state, with joints matched by name and `snap=0`. Differences are relative to the largest entry; the",
    "quantity with the largest difference is named. The reference for mimic joints is the projection of the robot",
    "without them, G'HG and G'τ. The column of derivatives has the largest difference of the derivatives of inverse",
    "and forward dynamics with respect to q and q̇, with fixed and floating base; accelerations and their derivatives",
    "are compared after multiplication by H, because some robots have links so light that H is nearly singular.",
    "MuJoCo is a second reference for inertia matrix and",
    f"bias with a fixed base; {REFUSED} where it refuses the file (most often because a moving body has no mass).",
    "Written by `python benchmarks/robots.py --page docs/benchmarks/robots.md`.",
    "",
]

if __name__ == "__main__":
    sys.exit(main())
