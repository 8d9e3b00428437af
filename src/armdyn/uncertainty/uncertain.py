"""Uncertain: an arm with uncertain parameters, given as distributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra.cached import cached_property
from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.formulations.payload import held
from armdyn.kernels.kernel import Kernel
from armdyn.simulation.plants import Plants
from armdyn.uncertainty import bodies
from armdyn.uncertainty.covariance import Correlated
from armdyn.uncertainty.distributions import Normal, Quantiles, Spec, Uniform, spread
from armdyn.uncertainty.points import checked_seed
from armdyn.uncertainty.samples import Samples, sobol_indices
from armdyn.uncertainty.statistics import SobolIndices

Array = NDArray[np.float64]
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
        found = []
        for what, least, names, specs in self._specs():
            for name, spec in zip(names, specs, strict=True):
                if isinstance(spec, Normal | Uniform):
                    found.append(Variable(f"{what} {name}".strip(), spec, least))
        if self._correlated is not None:
            found += [Variable(f"covariance {k + 1}", STANDARD) for k in range(self._correlated.size)]
        return tuple(found)

    @cached_property
    def _correlated(self) -> Correlated | None:
        return None if self.covariance is None else Correlated.of(self.arm, self.covariance)

    def sample(self, count: int, first: int = 0) -> Samples:
        """Samples `first` to `first + count`: their parameters, arms, quantities and simulations (`Samples`)."""
        for name, value in (("count", count), ("first", first)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise InputError(f"{name} must be a whole number, 0 or more; got {value!r}")
        return Samples(self, int(first), int(count))

    def sobol_indices(self, function: Any, count: int = 1024, seed: int = 0) -> SobolIndices:
        """Sobol' indices of ``function(samples)`` (k, ...): the share of its variance due to each variable.

        `count` is a power of two; the function is evaluated for ``count (d + 2)`` samples, d the number of variables.
        """
        return sobol_indices(self, function, count, seed)

    def values(self, u: Array) -> Array:
        """The uncertain parameters (k, d) at points (k, d) in the unit cube."""
        return self._quantiles(u)

    @cached_property
    def _quantiles(self) -> Quantiles:
        return Quantiles([(v.distribution, v.least) for v in self.variables])

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
