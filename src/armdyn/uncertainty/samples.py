"""Samples of an uncertain arm: their parameters, their arms, and quantities and simulations of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import exact
from armdyn.algebra.cached import cached_property
from armdyn.arm import Arm
from armdyn.chain import Link
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.simulation import Plants, Trajectory, simulate
from armdyn.uncertainty.points import unit_points
from armdyn.uncertainty.statistics import Outcome, SobolIndices

if TYPE_CHECKING:
    from armdyn.uncertainty.uncertain import Uncertain

Array = NDArray[np.float64]
FRICTION_SIGN = {"inverse_dynamics": 1.0, "forward_dynamics": -1.0}


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples `first` to `first + count` of an uncertain arm, drawn on first use.

    Slicing keeps the samples: ``uncertain.sample(100)[40:50]`` equals ``uncertain.sample(10, first=40)``.
    """

    uncertain: Uncertain
    first: int
    count: int
    given: Array | None = None  # points in the unit cube, if not those of the sample numbers

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: slice) -> Samples:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InputError(f"samples take slices without a step, such as samples[10:20]; got {rows!r}")
        start, stop, _ = rows.indices(self.count)
        points = None if self.given is None else self.given[start:stop]
        return Samples(self.uncertain, self.first + start, max(stop - start, 0), points)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("uncertain", "first", "count", "given")}

    def __repr__(self) -> str:
        return f"<Samples {self.first} to {self.first + self.count} of {self.uncertain!r}>"

    def arm(self, k: int) -> Arm:
        """The arm of sample k, without its encoder offsets, which an arm cannot represent."""
        if not 0 <= k < self.count:
            raise InputError(f"there are samples 0 to {self.count - 1}, got {k}")
        return arm_of(self[k : k + 1].plants)

    @property
    def arms(self) -> Iterator[Arm]:
        """The arms, one after the other."""
        return (self.arm(k) for k in range(self.count))

    @cached_property
    def points(self) -> Array:
        """Points (k, d) in the unit cube."""
        if self.given is not None:
            return self.given
        kind, seed = self.uncertain.points, self.uncertain.seed
        return unit_points(kind, seed, self.first, self.count, len(self.uncertain.variables))

    @property
    def values(self) -> Array:
        """The uncertain numbers (k, d), in the order of `Uncertain.variables`."""
        return self.uncertain.values(self.points)

    @cached_property
    def plants(self) -> Plants:
        """The run-time parameters of the sampled arms."""
        return self.uncertain._draw(self.points)

    @property
    def natural(self) -> Array:
        """Natural parameters of every link, (k, N, 10)."""
        return self.plants.natural

    @property
    def parameters(self) -> Array:
        """Minimal parameters (k, p), as kernels with ``parameters="runtime"`` take them."""
        return self.plants.parameters

    def outcome(self, values: Any) -> Outcome:
        """Numbers (k, ...) that belong to these samples, with their statistics."""
        array = np.asarray(values, dtype=float)
        if array.shape[:1] != (self.count,):
            raise InputError(f"expected values ({self.count}, ...), one per sample; got shape {array.shape}")
        return Outcome(self, array)

    def evaluate(self, quantity: str, *arrays: Any, friction: bool = False, tool_wrench: Any = None) -> Outcome:
        """A quantity of every sample at encoder readings (..., n), as an `Outcome` (k, ..., shape).

        With `friction`, inverse and forward dynamics include the friction of each sample.
        """
        choose("quantity", quantity, QUANTITIES)
        entry, plants = QUANTITIES[quantity], self.plants
        if len(arrays) != len(entry.inputs):
            names = ", ".join(name for name, _ in entry.inputs)
            raise InputError(f"{quantity} takes {len(entry.inputs)} arrays ({names}), got {len(arrays)}")
        if friction and quantity not in FRICTION_SIGN:
            raise InputError(f"{quantity} takes no friction; available for {', '.join(FRICTION_SIGN)}")
        given = {name: np.asarray(x, dtype=float) for (name, _), x in zip(entry.inputs, arrays, strict=True)}
        rank = max(x.ndim for x in given.values()) - 1
        rows = {name: x.reshape(1, *(1,) * (rank - x.ndim + 1), *x.shape) for name, x in given.items()}
        lanes = (self.count, *(1,) * rank, -1)
        if plants.offsets is not None and "q" in rows:
            rows["q"] = rows["q"] + plants.offsets.reshape(lanes)
        more = self._more_friction(rows["qd"], lanes) if friction or quantity == "friction" else 0.0
        if friction and quantity == "forward_dynamics":
            rows["tau"] = rows["tau"] - more
        wrench = [] if tool_wrench is None else [np.asarray(tool_wrench, dtype=float)]
        options = Options(friction=friction, tool_wrench=tool_wrench is not None)
        result = plants.quantity(quantity, *rows.values(), *wrench, options=options)
        if isinstance(result, tuple):
            raise InputError(f"{quantity} returns several arrays; samples can evaluate quantities with one output")
        out = np.asarray(result if quantity == "forward_dynamics" else result + more)
        return Outcome(self, np.ascontiguousarray(np.broadcast_to(out, (self.count, *out.shape[1:]))))

    def more_friction(self, qd: Array) -> Array:
        """The friction in addition to the nominal arm's, at velocities (k, n), one row per sample."""
        return self._more_friction(np.asarray(qd, dtype=float), (self.count, -1))

    def _more_friction(self, qd: Array, lanes: tuple[int, ...]) -> Array:
        """The same for velocities (1 or k, ..., n)."""
        plants, joints = self.plants, self.uncertain.arm.joints
        if plants.viscous is None or plants.coulomb is None:
            return np.zeros_like(qd)
        own = [np.array([float(getattr(j, name)) for j in joints]) for name in ("viscous", "coulomb")]
        viscous, coulomb = (x.reshape(lanes) - y for x, y in zip((plants.viscous, plants.coulomb), own, strict=True))
        return np.asarray(viscous * qd + coulomb * np.sign(qd))

    def simulate(self, q0: Any = None, qd0: Any = None, **options: Any) -> Trajectory:
        """`armdyn.simulate` for every sample, in one batch; the controller uses the nominal arm.

        Positions in the result are the true ones; `q0` is the encoder reading. The options are those of `simulate`.
        """
        return simulate(self.uncertain.arm, q0, qd0, plants=self.plants, **options)


def arm_of(plants: Plants) -> Arm:
    """The arm of the first plant, without its encoder offsets."""
    arm = plants.arm
    links = tuple(Link.from_natural(tuple(exact(float(x)) for x in row)) for row in plants.natural[0])
    joints = list(arm.given.joints)
    for name, field in (("viscous", "viscous"), ("coulomb", "coulomb"), ("rotors", "rotor_inertia")):
        rows = getattr(plants, name)
        if rows is not None:
            changed: list[dict[str, Any]] = [{field: exact(float(x))} for x in rows[0]]
            joints = [replace(joint, **change) for joint, change in zip(joints, changed, strict=True)]
    if plants.breakaway is not None:
        most = [exact(float(x)) for x in plants.breakaway[0]]
        joints = [replace(j, static=x if j.static > 0 else j.static) for j, x in zip(joints, most, strict=True)]
    out = replace(arm, given=replace(arm.given, links=links, joints=tuple(joints)))
    return out if plants.gravity is None else out.with_gravity(plants.gravity[0])


def sobol_indices(uncertain: Uncertain, function: Callable[[Samples], Any], count: int, seed: int) -> SobolIndices:
    """First and total indices by Saltelli's design on Sobol' points (Saltelli et al. 2010)."""
    from scipy.stats import sobol_indices as estimate

    size = len(uncertain.variables)
    if not size:
        raise InputError("nothing is uncertain, so there is no variance to decompose")
    if count < 2 or count & (count - 1):
        raise InputError(f"count must be a power of two (such as 1024), got {count!r}")
    both = unit_points("sobol", seed, 0, count, 2 * size)
    A, B = both[:, :size], both[:, size:]
    mixed = []
    for k in range(size):
        one = A.copy()
        one[:, k] = B[:, k]
        mixed.append(one)
    points = np.concatenate([A, B, *mixed])
    values = np.asarray(function(Samples(uncertain, 0, len(points), points)), dtype=float)
    shape, flat = values.shape[1:], values.reshape(len(points), -1).T  # (outputs, points)
    spans: Any = {"f_A": flat[:, :count], "f_B": flat[:, count : 2 * count]}
    spans["f_AB"] = flat[:, 2 * count :].reshape(len(flat), size, count).transpose(1, 0, 2)
    with np.errstate(all="ignore"), warnings.catch_warnings():  # a constant output has no indices
        warnings.simplefilter("ignore")
        found = estimate(func=spans, n=count)
        interval = found.bootstrap(confidence_level=0.95, n_resamples=200)

    def shaped(x: Any) -> Array:
        return np.asarray(x).reshape(-1, size).T.reshape(size, *shape)

    ends = [
        np.stack([shaped(getattr(side.confidence_interval, end)) for end in ("low", "high")])
        for side in (interval.first_order, interval.total_order)
    ]
    names = tuple(v.name for v in uncertain.variables)
    return SobolIndices(names, shaped(found.first_order), shaped(found.total_order), *ends)
