"""Uncertain: an arm with uncertain parameters, given as distributions.

Its samples have parameters and arms of their own, and quantities and simulations of all of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import exact
from armdyn.arm import Arm
from armdyn.chain import Link
from armdyn.errors import InputError, choose, required
from armdyn.formulations import QUANTITIES
from armdyn.formulations.payload import held
from armdyn.formulations.registry import Options, result_units
from armdyn.kernels.kernel import Kernel
from armdyn.simulation import Trajectory, simulate
from armdyn.simulation.programs import Plants
from armdyn.uncertainty import bodies
from armdyn.uncertainty.bodies import Correlated
from armdyn.uncertainty.distributions import (
    InverseDistributions,
    Normal,
    Spec,
    Uniform,
    checked_seed,
    spread,
    unit_points,
)
from armdyn.uncertainty.statistics import Outcome, SobolIndices
from armdyn.values import cached_property

Array = NDArray[np.float64]
# What torques are linear in, each on its own: their largest values over a box are at its corners.
LINEAR = ("payload_mass", "link_masses", "friction", "viscous", "coulomb", "gravity")
MOST_CORNERS = 10  # parameters: 1024 arms
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
        values = np.ascontiguousarray(np.broadcast_to(out, (self.count, *out.shape[1:])))
        chain = self.uncertain.arm.chain
        port, shape = entry.outputs[0][0], values.shape[1 + rank :]
        units = result_units(chain, quantity, port, shape) * math.prod(values.shape[1 : 1 + rank])
        return Outcome(self, values, quantity, units)

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
    required("scipy")
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
        indices = estimate(func=spans, n=count)
        interval = indices.bootstrap(confidence_level=0.95, n_resamples=200)

    def shaped(x: Any) -> Array:
        return np.asarray(x).reshape(-1, size).T.reshape(size, *shape)

    ends = [
        np.stack([shaped(getattr(side.confidence_interval, end)) for end in ("low", "high")])
        for side in (interval.first_order, interval.total_order)
    ]
    names = tuple(v.name for v in uncertain.variables)
    return SobolIndices(names, shaped(indices.first_order), shaped(indices.total_order), *ends)


AXES = ("x", "y", "z")
STANDARD = Normal(0.0, 1.0)


@dataclass(frozen=True)
class Variable:
    """One uncertain parameter: its name, its distribution and its smallest possible value."""

    name: str
    distribution: Normal | Uniform
    least: float = -np.inf


@dataclass(frozen=True, eq=False)
class Uncertain:
    """An arm with uncertain parameters, given as distributions.

    Each parameter is ``Normal(mean, sd)``, ``Uniform(low, high)`` or a number: one for all links or joints (drawn
    independently), a sequence with one for each, or a dict by joint name. What is not given keeps its nominal value.

    Parameters
    ----------
    arm
        The nominal arm, as its controller knows it.
    payload_mass, payload_com
        A point mass at the tool, kg, and its position in the tool's frame, m: (3,), or one for all axes.
    link_masses
        Factors on the mass of each link, which scale its inertia too: ``Normal(1, 0.05)`` is 5 %.
    link_coms
        Displacement of each link's centre of mass, m, along each axis of the link.
    link_inertias
        Relative deviations of each link's second moments about its centre of mass: ``Normal(0, 0.1)`` is about 10 % in
        every direction. They are log-Cholesky coordinates, so every value gives a physically consistent body.
    friction
        Factors on the viscous and Coulomb friction of each joint.
    viscous, coulomb
        Viscous (N m s/rad) and Coulomb friction (N m) of each joint.
    gravity
        Deviation of gravity from the arm's, m/s², along each axis of the base.
    joint_offsets
        True positions minus encoder readings, rad or m.
    covariance
        The result of `identify`: links, rotor inertias and friction vary about its estimates with their covariance. Or
        the covariance of the arm's minimal parameters, (p, p).
    seed
        Sample i of a seed is bitwise the same in any order and number, in every process and on every machine.
    points
        "random", or "sobol" for quasi-random points, whose averages converge faster.

    If the arm's links are physically consistent, so are the samples: masses and friction are truncated at 0, and
    inertias vary in log-Cholesky coordinates of the pseudo-inertia.
    """

    arm: Arm
    payload_mass: Any = None
    payload_com: Any = None
    link_masses: Any = None
    link_coms: Any = None
    link_inertias: Any = None
    friction: Any = None
    viscous: Any = None
    coulomb: Any = None
    gravity: Any = None
    joint_offsets: Any = None
    covariance: Any = None
    seed: int = 0
    points: str = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.arm, Arm):
            raise InputError(f"Uncertain takes an Arm, got {self.arm!r}; armdyn.load(...) returns one")
        checked_seed(self.seed)
        frictions = [name for name in ("friction", "viscous", "coulomb") if getattr(self, name) is not None]
        if frictions or self.joint_offsets is not None or self.covariance is not None:
            self.arm.must_suit("uncertain friction, joint offsets and covariance")
        if self.friction is not None and len(frictions) > 1:
            raise InputError("friction= are factors on viscous and dry friction; give them or viscous=, coulomb=")
        if self.payload_com is not None and self.payload_mass is None:
            raise InputError("payload_com= needs payload_mass=")
        if self.payload_mass is not None:
            self.arm.require_tool("a payload")
        for what, least, names, specs in self._specs():
            for name, spec in zip(names, specs, strict=True):
                if isinstance(spec, float) and spec < least:
                    raise InputError(f"{f'{what} {name}'.strip()} is {spec:g}, which is impossible: at least {least:g}")
        self._draw(np.full((1, len(self.variables)), 0.5))  # raises errors about impossible values at once

    @property
    def _links(self) -> list[str]:
        return [joint.name or f"link {k}" for k, joint in enumerate(self.arm.chain.joints, 1)]

    @property
    def _joints(self) -> list[str]:
        return list(self.arm.joint_names)

    def _specs(self) -> Iterator[tuple[str, float, tuple[str, ...], tuple[Spec, ...]]]:
        """(parameter, smallest possible value, names, distributions) of everything that was given."""
        axes = [f"{link} {axis}" for link in self._links for axis in AXES]
        table: tuple[tuple[str, float, list[str], float], ...] = (
            ("payload_mass", 0.0, [""], 0.0),
            ("payload_com", -np.inf, list(AXES), 0.0),
            ("link_masses", 0.0, self._links, 1.0),
            ("link_coms", -np.inf, axes, 0.0),
            ("link_inertias", -np.inf, self._links, 0.0),
            ("friction", 0.0, self._joints, 1.0),
            ("viscous", 0.0, self._joints, 0.0),
            ("coulomb", 0.0, self._joints, 0.0),
            ("gravity", -np.inf, list(AXES), 0.0),
            ("joint_offsets", -np.inf, self._joints, 0.0),
        )
        for what, least, names, usual in table:
            given = getattr(self, what)
            if given is None:
                continue
            if what == "link_coms":  # per link, three axes each
                per_link = spread(given, self._links, what, usual)
                yield what, least, tuple(names), tuple(spec for spec in per_link for _ in AXES)
            elif what == "link_inertias":
                per_link = spread(given, names, what, usual)
                entries = [f"{link} {r + 1}{c + 1}" for link in names for r, c in bodies.PAIRS3]
                yield what, least, tuple(entries), tuple(spec for spec in per_link for _ in bodies.PAIRS3)
            else:
                yield what, least, tuple(names), spread(given, names, what, usual)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The uncertain parameters, in the order of a sample's coordinates."""
        varying = []
        for what, least, names, specs in self._specs():
            for name, spec in zip(names, specs, strict=True):
                if isinstance(spec, Normal | Uniform):
                    varying.append(Variable(f"{what} {name}".strip(), spec, least))
        if self._correlated is not None:
            varying += [Variable(f"covariance {k + 1}", STANDARD) for k in range(self._correlated.size)]
        return tuple(varying)

    @cached_property
    def _correlated(self) -> Correlated | None:
        return None if self.covariance is None else Correlated.of(self.arm, self.covariance)

    def sample(self, count: int, first: int = 0) -> Samples:
        """Samples `first` to `first + count`: their parameters, arms, quantities and simulations (`Samples`)."""
        for name, value in (("count", count), ("first", first)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise InputError(f"{name} must be a whole number, 0 or more; got {value!r}")
        return Samples(self, int(first), int(count))

    def corners(self) -> Samples:
        """Every combination of the ranges' ends, as samples: torques are greatest and least at them.

        Torques are linear in each of payload mass, factors on link masses, gravity and friction while the others are
        kept, so what holds at all corners holds for every arm in the box. `Uniform` distributions of these are needed,
        at most ten of them that vary.
        """
        for variable in self.variables:
            what = variable.name.split()[0]
            if what not in LINEAR:
                raise InputError(
                    f"torques are not linear in {variable.name}, so that corners prove nothing; sample() draws arms"
                )
            if not isinstance(variable.distribution, Uniform):
                raise InputError(
                    f"{variable.name} has no ends: {variable.distribution!r}; corners need Uniform(low, high)"
                )
        count = len(self.variables)
        if count > MOST_CORNERS:
            raise InputError(f"{count} uncertain parameters have 2^{count} corners, at most 2^{MOST_CORNERS} are taken")
        points = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return Samples(self, 0, len(points), points.astype(float))

    def sobol_indices(self, function: Any, count: int = 1024, seed: int = 0) -> SobolIndices:
        """Sobol' indices of ``function(samples)`` (k, ...): the share of its variance due to each variable.

        `count` is a power of two; the function is evaluated for ``count (d + 2)`` samples, d the number of variables.
        """
        return sobol_indices(self, function, count, seed)

    def values(self, u: Array) -> Array:
        """The uncertain parameters (k, d) at points (k, d) in the unit cube."""
        return self._quantiles(u)

    @cached_property
    def _quantiles(self) -> InverseDistributions:
        return InverseDistributions([(v.distribution, v.least) for v in self.variables])

    def _draw(self, u: Array) -> Plants:
        """The arms at points in the unit cube."""
        values, at, drawn = self.values(u), 0, {}
        for what, _, _, specs in self._specs():
            columns = []
            for spec in specs:
                if isinstance(spec, float):
                    columns.append(np.full(len(u), spec))
                else:
                    columns.append(values[:, at])
                    at += 1
            drawn[what] = np.stack(columns, axis=1)
        return self._plants(len(u), drawn, values[:, at:])

    def _plants(self, count: int, drawn: dict[str, Array], standard: Array) -> Plants:
        arm = self.arm
        joints = arm.joints
        natural, extras = self._bodies(count, drawn, standard)
        minimal = bodies.product(natural.reshape(count, -1), np.asarray(arm.minimal_parameters.array).T.copy())
        if "payload_mass" in drawn:
            mass, com = drawn["payload_mass"][:, 0], drawn.get("payload_com", np.zeros((count, 3)))
            minimal = _payload_parameters(arm)(mass, com, np.zeros(6), minimal)
            body = held(arm.chain.floats.tool, mass, com.T)
            natural[:, arm.chain.tool_carrier - 1] += np.stack(
                [np.broadcast_to(x, count) for x in body.natural], axis=1
            )
        beside: dict[str, Array] = dict(extras)
        own = {name: np.array([float(getattr(j, name)) for j in joints]) for name in ("viscous", "coulomb")}
        if "friction" in drawn:
            beside |= {name: drawn["friction"] * beside.get(name, own[name]) for name in own}
        if "viscous" in drawn or "coulomb" in drawn or extras.keys() & own.keys():
            rows = {name: np.tile(own[name], (count, 1)) for name in own}
            beside |= {name: drawn.get(name, beside.get(name, rows[name])) for name in own}
        if "gravity" in drawn:
            beside["gravity"] = np.array(arm.gravity) + drawn["gravity"]
        if "joint_offsets" in drawn:
            beside["offsets"] = drawn["joint_offsets"]
        return Plants(arm, natural, minimal, **beside)

    def _bodies(self, count: int, drawn: dict[str, Array], standard: Array) -> tuple[Array, dict[str, Array]]:
        """Natural parameters (k, N, 10) of the links without the payload, and the extras that a covariance varies."""
        given = np.array([[float(x) for x in link.natural] for link in self.arm.links])
        natural = np.tile(given, (count, 1, 1))
        extras: dict[str, Array] = {}
        if self._correlated is not None:
            natural, extras = self._correlated.drawn(standard)
        if "link_inertias" in drawn:
            for i, name in enumerate(self._links):
                deviations = drawn["link_inertias"][:, 6 * i : 6 * i + 6]
                if np.any(deviations):
                    natural[:, i] = _with_inertia(natural[:, i], deviations, given[i], f"the link of {name}")
        if "link_coms" in drawn:
            for i in range(len(given)):
                natural[:, i] = bodies.shifted(natural[:, i], drawn["link_coms"][:, 3 * i : 3 * i + 3])
        if "link_masses" in drawn:
            natural = natural * drawn["link_masses"][:, :, None]
        return natural, extras

    def __describe__(self) -> Any:
        """The content that identifies this object in `armdyn.sweeps`; an estimate counts by what is derived from it."""
        made = self._correlated
        correlated = None if made is None else (made.factors, made.extras, made.K, made.root, made.back)
        specs = {what: specs for what, _, _, specs in self._specs()}
        return self.arm, specs, correlated, self.seed, self.points

    def __repr__(self) -> str:
        given = [f.name for f in fields(self)[1:-2] if getattr(self, f.name) is not None]
        return f"<Uncertain {self.arm.name}: {len(self.variables)} variables ({', '.join(given) or 'none'})>"


@lru_cache(maxsize=32)
def _payload_parameters(arm: Arm) -> Kernel:
    """The kernel from a payload and the minimal parameters without it to those with it.

    It runs on NumPy, which is bitwise the same on every machine; compiled code uses fused multiply-adds if it can.
    """
    return arm.kernel("payload_parameters", backend="numpy", parameters="runtime")


def _with_inertia(natural: Array, deviations: Array, given: Array, what: str) -> Array:
    """Bodies (k, 10) with relative deviations of the second moments about the centre of mass; mass and centre are kept.

    The coordinates on the diagonal are halved: e^(2 δ / 2) = 1 + δ + …
    """
    if not given[0] > 0:
        raise InputError(f"{what} has no mass, its inertia cannot vary: give link_inertias= by name")
    mass, h = natural[:, 0], natural[:, 1:4]
    outer = h[:, :, None] * h[:, None, :] / mass[:, None, None]
    middle = given[1:4] / given[0]
    about = bodies.second_moments(given[None, 4:])[0] - given[0] * middle[:, None] * middle[None, :]
    L = bodies.factor(about, what)
    theta = deviations * np.array([0.5 if r == c else 1.0 for r, c in bodies.PAIRS3])
    S = bodies.varied(L, theta) * (mass / given[0])[:, None, None] + outer
    return np.concatenate([mass[:, None], h, bodies.inertia_of(S)], axis=1)
