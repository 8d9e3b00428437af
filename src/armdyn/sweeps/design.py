"""A design sweep over link lengths and masses, compiled once: both are run-time inputs of the programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from armdyn.algebra import exact
from armdyn.arm import Arm
from armdyn.chain import Link
from armdyn.errors import InputError
from armdyn.files import arrays
from armdyn.formulations.payload import held
from armdyn.formulations.registry import Options
from armdyn.simulation.plants import Varying, plant_program
from armdyn.sweeps.capability import postures

Motions = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, qd, qdd


def designs(lengths: Sequence[Sequence[float]], masses: Sequence[Sequence[float]]) -> np.ndarray:
    """All combinations of factors, (k, 2 n): on the lengths of the n links, then on their masses.

    `lengths` and `masses` list the factors to try for each link. Lengths vary slowest, so that a chunk has few
    geometries.
    """
    if len(lengths) != len(masses):
        raise InputError(f"expected factors for as many lengths as masses, got {len(lengths)} and {len(masses)}")
    rows = [(*a, *b) for a in product(*lengths) for b in product(*masses)]
    found = np.array(rows, dtype=float)
    if not (found > 0).all():
        raise InputError("factors on lengths and masses must be positive")
    return found


@dataclass(frozen=True)
class Design:
    """Evaluates rows of `designs`, each an arm with links scaled in length and mass.

    A length factor ℓ scales a link in all directions: the next joint and the mass distribution are ℓ times as far away,
    and the mass grows with ℓ, as that of a tube does, in addition to its own factor. Over `count` postures and motions
    with accelerations up to `acceleration`, the results are the reach of the tool, the arm's mass, and for each joint
    the largest gravity load and the largest torque with `payload` kg at the tool.
    """

    count: int = 512
    acceleration: float = 5.0
    payload: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        arrays.payload(self.payload, (0, 0, 0), None)  # raises an error about an impossible payload at once

    def __call__(self, arm: Arm, samples: np.ndarray) -> dict[str, Any]:
        """The results for some designs."""
        rows, n = np.asarray(samples, dtype=float), arm.n
        if rows.ndim != 2 or rows.shape[1] != 2 * n or not arm.chain.plain or not arm.chain.serial:
            raise InputError(f"expected designs (k, {2 * n}) of a serial arm with {n} joints, got shape {rows.shape}")
        found = {name: np.zeros((len(rows), n)) for name in ("gravity_load", "torque")}
        reach, mass = np.zeros(len(rows)), np.zeros(len(rows))
        motions, pose = self._motions(arm), arm.kernel("pose", parameters="geometry")
        for lengths in np.unique(rows[:, :n], axis=0):
            own = np.flatnonzero((rows[:, :n] == lengths).all(axis=1))
            built = stretched(arm, tuple(lengths.tolist()))
            geometry = np.array(built.geometry)
            at = np.asarray(pose(motions[0], geometry))[:, :3, 3]
            reach[own] = np.sqrt((at**2).sum(axis=1)).max()
            natural = self._natural(built, rows[own, n:])
            mass[own] = natural[:, :, 0].sum(axis=1) - self.payload
            for name, values in _torques(arm, geometry, natural, motions).items():
                found[name][own] = values
        per_joint = {name: (("sample", "joint"), x) for name, x in found.items()}
        factors = {"length": rows[:, :n], "mass_factor": rows[:, n:]}
        return {"reach": ("sample", reach), "mass": ("sample", mass), **per_joint} | {
            name: (("sample", "joint"), x) for name, x in factors.items()
        }

    def _motions(self, arm: Arm) -> Motions:
        q, other = postures(arm, self.seed, 0, self.count), postures(arm, self.seed + 1, 0, self.count)
        span = np.maximum(arm.working_range[:, 1], 1e-9)
        return q, np.zeros_like(q), self.acceleration * np.clip(other / span, -1, 1)

    def _natural(self, arm: Arm, factors: np.ndarray) -> np.ndarray:
        """Natural parameters (k, n, 10), including the payload on the last link."""
        own = np.array([[float(x) for x in link.natural] for link in arm.links])
        natural = own * factors[:, :, None]
        natural[:, arm.chain.tool_carrier - 1] += np.array(held(arm.chain.floats.tool, self.payload, (0, 0, 0)).natural)
        return np.asarray(natural)


def _torques(arm: Arm, geometry: np.ndarray, natural: np.ndarray, motions: Motions) -> dict[str, np.ndarray]:
    """The largest magnitudes over the motions, (k, n), for links (k, n, 10) with one geometry."""
    rows = natural.reshape(len(natural), -1)
    constants = np.hstack([rows, np.tile(geometry, (len(rows), 1))])[:, None]

    def largest(quantity: str, *inputs: np.ndarray) -> np.ndarray:
        program = plant_program(arm.chain, quantity, Options(), Varying(geometry=True))
        assert program is not None  # an arm has joints
        return np.asarray(np.abs(program(*inputs, constants)).max(axis=1))

    return {"gravity_load": largest("gravity_load", motions[0]), "torque": largest("inverse_dynamics", *motions)}


@lru_cache(maxsize=32)
def stretched(arm: Arm, factors: tuple[float, ...]) -> Arm:
    """The arm with its links scaled in length by these factors."""
    exactly = [exact(x) for x in factors]
    joints, links = list(arm.given.joints), list(arm.given.links)
    for i, x in enumerate(exactly):
        m, h, S = links[i].mass * x, links[i].moment * (x * x), links[i].inertia * (x * x * x)
        links[i] = Link(m, h, S)
        if i + 1 < len(joints):
            joints[i + 1] = replace(joints[i + 1], b=joints[i + 1].b * x, d=joints[i + 1].d * x)
    tool = replace(arm.given.tool, p=arm.given.tool.p * exactly[-1])
    given = replace(arm.given, joints=tuple(joints), links=tuple(links), tool=tool)
    return replace(arm, name=f"{arm.name} stretched", given=given, frames=())
