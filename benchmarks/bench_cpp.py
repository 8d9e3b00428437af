"""armdyn beside Pinocchio in C++, no Python in its loop: `python benchmarks/bench_cpp.py [--write] [ROBOT...]`.

`pinocchio_peer.cpp` is compiled against the headers in the wheel `pin` and Debian's libeigen3-dev, once as the wheel is
(-O3) and once more with -march=native; the faster of the two counts for every quantity. The results are compared
first, to 1e-8. Then both programs and armdyn take turns, on one thread, in thread time, the least of the rounds:
"call" is one configuration per call from Python, "batch" 16,384 at once. Without a compiler or the headers it says so.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import armdyn

HERE = Path(__file__).parent
TABLE = HERE.parent / "docs" / "tables" / "benchmarks-cpp.txt"
EIGEN = Path("/usr/include/eigen3")
PINOCCHIO = (  # what its own build defines
    *("-std=c++17", "-DNDEBUG", "-w", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"),
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=10",
)
FLAGS = (["-O3"], ["-O3", "-march=native"])
BATCH, SINGLE, ROUNDS, TOLERANCE = 16_384, 256, 7, 1e-8
QUANTITIES = {
    "inertia_matrix": "H",
    "inverse_dynamics": "ID",
    "forward_dynamics": "FD",
    "gravity_load": "g",
    "jacobian": "J",
    "inverse_dynamics_derivatives": "∂ID",
    "forward_dynamics_derivatives": "∂FD",
    "regressor": "Y",
}
ROBOTS: dict[str, tuple[str, bool]] = {  # a catalogue name, general kinds of joints, or a file of example-robot-data
    "UR5": ("ur5", False),
    "random 7R": ("RRRRRRR", False),
    "xArm 7": ("xarm7", False),
    "random 12R": ("RRRRRRRRRRRR", False),
    "Panda with hand": ("panda_description/urdf/panda.urdf", False),
    "Baxter": ("baxter_description/urdf/baxter.urdf", False),
    "Talos, floating": ("talos_data/robots/talos_reduced.urdf", True),
}


def missing() -> str:
    """What the comparison lacks here; "" if nothing."""
    if shutil.which("g++") is None:
        return "g++"
    if find_spec("pinocchio") is None:
        return "the package pin"
    if not (headers() / "pinocchio").is_dir():
        return "the headers in the package pin"
    return "" if EIGEN.is_dir() else "libeigen3-dev"


def headers() -> Path:
    """The folder of Pinocchio's headers."""
    spec = find_spec("pinocchio")
    assert spec is not None
    assert spec.origin is not None
    return next((one / "include" for one in Path(spec.origin).parents if one.name == "cmeel.prefix"), Path("/nowhere"))


def built(folder: Path) -> list[Path]:
    """The C++ programs, one for each set of flags; those that are there already are used again."""
    made = []
    for k, flags in enumerate(FLAGS):
        path = folder / f"peer{k}"
        made.append(path)
        if path.exists():
            continue
        print(f"compiling pinocchio_peer.cpp with {' '.join(flags)}: some minutes", file=sys.stderr, flush=True)
        include = [f"-I{headers()}", f"-I{EIGEN}"]
        source = str(HERE / "pinocchio_peer.cpp")
        subprocess.run(["g++", *PINOCCHIO, *flags, *include, source, "-o", str(path)], check=True)
    return made


def robot(name: str) -> tuple[Any, Any]:
    """An arm without rotor inertias that the file does not have, and the same as Pinocchio's model."""
    import pinocchio as pin

    what, floating = ROBOTS[name]
    if what.endswith(".urdf"):
        files = metadata.files("example-robot-data") or ()
        path = str(next(file for file in files if str(file).endswith(what)).locate())
    else:
        arm = armdyn.generic_arm(what) if set(what) <= set("RP") else armdyn.load(what)
        path = str(Path(tempfile.mkdtemp(prefix="armdyn-bench-")) / "arm.urdf")
        arm.to_urdf(path)
        limited = r'\1type="revolute"\2><limit lower="-3" upper="3" effort="100" velocity="10"/>'
        written = Path(path).read_text(encoding="utf-8")  # Pinocchio has two coordinates for a joint without limits
        written = re.sub(r'(<joint [^>]*)type="continuous"([^>]*)>', limited, written)
        Path(path).write_text(written, encoding="utf-8")
    base = [pin.JointModelFreeFlyer()] if floating else []
    model = pin.buildModelFromUrdf(path, *base)
    model.armature[:] = 0
    return armdyn.load(model, snap=0), model


def text(model: Any) -> str:
    """Pinocchio's model as the C++ program reads it."""
    lines = [f"{model.njoints - 1} {' '.join(map(repr, model.gravity.linear.tolist()))}"]
    for k in range(1, model.njoints):
        joint, body, at = model.joints[k], model.inertias[k], model.jointPlacements[k]
        kind = joint.shortname().removeprefix("JointModel")
        axis = joint.extract().axis if kind.endswith("Unaligned") else np.zeros(3)
        numbers = [*axis, 0.0, body.mass, *body.lever, *body.inertia.ravel(), *at.rotation.ravel(), *at.translation]
        lines.append(f"{model.parents[k]} {kind} {' '.join(repr(float(x)) for x in numbers)}")
    return "\n".join(lines) + "\n"


def motions(model: Any, count: int) -> list[np.ndarray]:
    """Random q, v, a, τ in Pinocchio's order; quaternions have length 1."""
    rng = np.random.default_rng(0)
    q, v, a, tau = (rng.uniform(-1, 1, (count, size)) for size in (model.nq, model.nv, model.nv, model.nv))
    if model.nq > model.nv:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return [q, v, a, tau]


def taking(arm: Any, quantity: str, model: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """The kernel, and which of (q, v, a, τ) it takes."""
    if quantity == "jacobian":  # of the last joint's own body
        frames = [frame.name for frame in arm.link_frames]
        kernel = arm.jacobian.variant(frame=frames[-1] if model.names[model.njoints - 1] not in frames else None)
    else:
        kernel = getattr(arm, quantity)
    names = {"q": 0, "qd": 1, "qdd": 2, "tau": 3}
    return kernel, lambda given: tuple(given[names[name]] for name, _ in kernel.ports[0])


def agree(arm: Any, model: Any, quantity: str, found: Any, row: np.ndarray) -> float:
    """The largest difference of the results, relative to the largest entry; Pinocchio's are in its order of joints."""
    joints = [name for name in model.names if name in arm.joint_names]
    order = arm.order(joints)
    theirs: list[np.ndarray] = []
    nv = model.nv
    if quantity == "regressor":
        weights = np.concatenate([inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]])
        theirs = [(row.reshape(nv, -1) @ weights)[order.qd]]
        found = np.asarray(found) @ np.array(arm.minimal_parameters.values, float)
    elif quantity == "jacobian":
        theirs = [row.reshape(6, nv)[:, order.qd]]
    elif "derivatives" in quantity:
        theirs = [part.reshape(nv, nv)[np.ix_(order.qd, order.qd)] for part in np.split(row, 3)]
    elif quantity == "inertia_matrix":
        theirs = [row.reshape(nv, nv)[np.ix_(order.qd, order.qd)]]
    else:
        theirs = [row[order.qd]]
    ours = found if isinstance(found, tuple) else (found,)
    return max(float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(ours, theirs, strict=True))


def least(function: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The least thread time of some calls."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def measured(name: str, peers: list[Path], folder: Path) -> dict[str, dict[str, float]]:
    """Seconds per configuration by quantity: C++, and armdyn's call and batch."""
    arm, model = robot(name)
    given = motions(model, BATCH)
    order = arm.order([joint for joint in model.names if joint in arm.joint_names])
    mine = [given[0][:, order.q], *(x[:, order.qd] for x in given[1:])]
    (folder / "model.txt").write_text(text(model))
    np.concatenate([x[:SINGLE] for x in given], axis=1).tofile(folder / "inputs.bin")
    found: dict[str, dict[str, float]] = {}
    cpp: dict[str, float] = {}
    for peer in peers:
        command = [str(peer), *(str(folder / file) for file in ("model.txt", "inputs.bin", "results.txt")), "20"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for line in said.splitlines():
            quantity, seconds = line.split()
            cpp[quantity] = min(cpp.get(quantity, float("inf")), float(seconds))
    lines = (folder / "results.txt").read_text().splitlines()
    rows = {line.split()[0]: np.array(line.split()[1:], float) for line in lines}
    for quantity in QUANTITIES:
        kernel, arguments = taking(arm, quantity, model)
        one = arguments([x[0] for x in mine])
        error = agree(arm, model, quantity, kernel(*one), rows[quantity])
        if error > TOLERANCE:
            raise SystemExit(f"{name}: {quantity} differs by {error:.1e}")
        batch = arguments(mine)
        size = max(256, min(BATCH, 2**27 // (8 * sum(int(np.prod(shape)) for _, shape in kernel.ports[1]))))
        part = tuple(np.ascontiguousarray(x[:size]) for x in batch)
        out = kernel(*part)
        calls = [tuple(x[k].copy() for x in part) for k in range(SINGLE)]

        def single(kernel: Any = kernel, calls: Any = calls) -> None:
            for call in calls:
                kernel(*call)

        found[quantity] = {
            "C++": cpp[quantity],
            "call": least(single, 20) / SINGLE,
            "batch": least(lambda k=kernel, p=part, o=out: k(*p, out=o)) / size,
        }
    return found


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", help=f"of {', '.join(ROBOTS)}; by default all")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name} of the documentation")
    parser.add_argument("--build", type=Path, help="a folder in which the C++ programs are kept")
    given = parser.parse_args()
    if missing():
        print(f"skipped: {missing()} is not installed; it needs g++, the package pin and libeigen3-dev")
        return
    lines = [f"| robot | | {' | '.join(QUANTITIES.values())} |", "|---|---|" + "---:|" * len(QUANTITIES)]
    with tempfile.TemporaryDirectory(prefix="armdyn-bench-") as place:
        peers = built(given.build or Path(place))
        for name in given.robots or ROBOTS:
            found = measured(name, peers, Path(place))
            for row in ("C++", "call", "batch"):
                cpp = row == "C++"
                head = f"| {name} | Pinocchio in C++, ns |" if cpp else f"| | armdyn, {row} |"
                cells = [
                    f"{1e9 * times['C++']:.0f}" if cpp else f"{times['C++'] / times[row]:.1f}"
                    for times in found.values()
                ]
                lines.append(f"{head} {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if given.write:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
