"""The attacks of the campaign on numbers: each draws one case from a seed and says how it failed, or None.

A failing robot is shrunk: it loses joints as long as it still fails.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
import attacks_on_motion
from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.files import toml
from armdyn.kernels.kernel import Kernel
from attacks_on_files import Failure, files, forks, killed_writers, spoilt_cache
from campaign_trees import TOLERANCE, drawn
from dynamics_cases import mujoco_model
from random_chains import any_chain, configuration
from tree_judge import differences

QUANTITIES = ("inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics", "jacobian", "dh_poses")


# Robots against two engines.


def _tree_errors(chain: Chain, motion: Any) -> str:
    found = {name: error for name, error in differences(chain, motion).items() if not error < TOLERANCE}
    return ", ".join(f"{name} is off by {error:.2g}" for name, error in found.items())


def trees(seed: int, folder: Path) -> Failure | None:
    """A random tree, every formulation of every quantity, against Pinocchio."""
    chain, motion = drawn(seed, 12)
    message = _tree_errors(chain, motion)
    if not message:
        return None
    while chain.joints and not any(joint.mimic for joint in chain.joints):  # leaves go first: the last is one
        n = len(chain.joints) - 1
        fewer = replace(chain, joints=chain.joints[:n], links=chain.links[:n], parents=chain.parents[:n])
        less = tuple(x[: fewer.nq if k == 0 else fewer.nv] for k, x in enumerate(motion))
        if not n or not _tree_errors(fewer, less):
            break
        chain, motion = fewer, less
    return Failure(message, _saved(chain, motion), ".toml")


def _saved(chain: Chain, motion: Any) -> str:
    lines = [f"# {name} = {np.asarray(x).tolist()}" for name, x in zip(("q", "qd", "qdd"), motion, strict=False)]
    return "\n".join(lines) + "\n" + toml.text(Arm("shrunk", chain, snap=0.0).description)


def _chain_errors(chain: Chain, q: Any, qd: Any, qdd: Any) -> str:
    import mujoco

    model = mujoco_model(chain)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qacc = q, qd, qdd
    mujoco.mj_inverse(model, data)
    arm = Arm("chain", chain, snap=0.0)
    said = {"inverse_dynamics": data.qfrc_inverse.copy()}
    got = {"inverse_dynamics": arm.inverse_dynamics(q, qd, qdd)}
    said["forward_dynamics"], got["forward_dynamics"] = qdd, arm.forward_dynamics(q, qd, said["inverse_dynamics"])
    condition = np.linalg.cond(arm.inertia_matrix(q))
    wrong = []
    for name in got:
        scale = 1 + np.abs(said[name]).max()
        error = np.abs(got[name] - said[name]).max() / scale
        limit = 1e-9 * (condition if name == "forward_dynamics" else 1.0)
        if not error < limit:
            wrong.append(f"{name} is off by {error:.2g} from MuJoCo's")
    return ", ".join(wrong)


def chains(seed: int, folder: Path) -> Failure | None:
    """A random serial chain, compiled, against MuJoCo."""
    rng = random.Random(seed)
    chain = any_chain(rng, 7)
    while any(link.mass == 0 for link in chain.links):  # MuJoCo refuses them
        chain = any_chain(rng, 7)
    motion = tuple(np.array(configuration(rng, chain.n)) for _ in range(3))
    message = _chain_errors(chain, *motion)
    if not message:
        return None
    while chain.n > 1:
        n = chain.n - 1
        fewer = replace(chain, joints=chain.joints[:n], links=chain.links[:n], parents=chain.parents[:n])
        if not _chain_errors(fewer, *(x[:n] for x in motion)):
            break
        chain, motion = fewer, tuple(x[:n] for x in motion)
    return Failure(message, _saved(chain, motion), ".toml")


# Arrays in every layout.


def _laid_out(rng: np.random.Generator, a: Any) -> Any:
    """The same numbers in other strides, alignment, byte order or class."""
    kind = rng.integers(7)
    if kind == 0:
        step = rng.integers(1, 4, a.ndim)
        store = np.full([n * s for n, s in zip(a.shape, step, strict=True)], np.nan)
        where = tuple(slice(None, None, int(s)) for s in step)
        store[where] = a
        return store[where]
    if kind == 1:
        turn = tuple(slice(None, None, int(rng.choice([-1, 1]))) for _ in a.shape)
        return a[turn].copy()[turn]
    if kind == 2:
        return np.asfortranarray(a)
    if kind == 3:
        shift = int(rng.integers(1, 8))
        return np.frombuffer(b"\0" * shift + a.tobytes(), dtype=float, offset=shift).reshape(a.shape)
    if kind == 4:
        return a.astype(">f8")
    if kind == 5:
        fixed = a.copy()
        fixed.flags.writeable = False
        return fixed
    return a.view(type("Mine", (np.ndarray,), {}))


def layouts(seed: int, folder: Path) -> Failure | None:
    """A kernel's bits in any storage of its arrays, with any batch, on any number of threads."""
    rng = np.random.default_rng(seed)
    kernel = _kernel(("puma560", "scara", "panda")[seed % 3], QUANTITIES[int(rng.integers(len(QUANTITIES)))])
    batch = tuple(int(x) for x in rng.integers(0, 6, rng.integers(0, 4)))
    plain = [rng.uniform(-2, 2, (*batch, *shape)) for _, shape in kernel.assembly.inputs]
    expected = np.asarray(kernel(*plain))
    arrays = [_laid_out(rng, a) for a in plain]
    threads = int(rng.integers(1, 5))
    out = _laid_out(rng, np.zeros_like(expected)) if rng.random() < 0.5 else None
    out = out if out is not None and out.flags.writeable else None
    got = np.asarray(kernel(*arrays, out=out, threads=threads) if out is not None else kernel(*arrays, threads=threads))
    if got.astype(float).tobytes() == expected.tobytes():
        return None
    about = [{"shape": a.shape, "strides": a.strides, "dtype": a.dtype.str} for a in arrays]
    content = {"seed": seed, "kernel": repr(kernel), "threads": threads, "arrays": about}
    return Failure("another layout gives other bits", json.dumps(content, indent=1), ".json")


_KERNELS: dict[tuple[str, str], Kernel] = {}


def _kernel(arm: str, quantity: str) -> Kernel:
    if (arm, quantity) not in _KERNELS:
        _KERNELS[arm, quantity] = armdyn.load(arm).kernel(quantity)
    return _KERNELS[arm, quantity]


ATTACKS: dict[str, Callable[[int, Path], Failure | None]] = {
    "trees": trees,
    "chains": chains,
    "layouts": layouts,
    "files": files,
    "cache": spoilt_cache,
    "writers": killed_writers,
    "forks": forks,
    **attacks_on_motion.ATTACKS,
}
