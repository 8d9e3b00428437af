"""Plants: arms that differ from the controller's model, one per lane, by run-time parameters of the programs.

A compiled loop takes them as one more input, `constants`, fixed for each lane: the inertial parameters, gravity,
friction and joint offsets that vary. One program thus simulates any number of arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from armdyn.algebra import Vec3
from armdyn.algebra.frozen import cached_property
from armdyn.arm import Arm
from armdyn.chain import Chain, Link
from armdyn.chain.geometry import geometry_constants, with_geometry
from armdyn.codegen.compile import Compiled, load_or_compile
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.formulations.substitution import complete
from armdyn.graph.program import trace
from armdyn.kernels.kernel import Kernel
from armdyn.parameters import minimal_parameters, realise

AT_RUN_TIME = Options(parameters="runtime")


@dataclass(frozen=True)
class Varying:
    """What varies between plants besides the inertial parameters; `dry` flags the joints with dry friction.

    If gravity or the geometry varies, the inertial parameters are the ten natural ones per link. Otherwise they are the
    minimal ones, which are fewer but depend on the geometry and the direction of gravity.
    """

    gravity: bool = False
    friction: bool = False
    offsets: bool = False
    rotors: bool = False
    dry: tuple[bool, ...] = ()
    geometry: bool = False

    @property
    def natural(self) -> bool:
        """Whether the inertial parameters are the natural ones."""
        return self.gravity or self.geometry

    def sizes(self, chain: Chain) -> dict[str, int]:
        """How many numbers there are of each kind, in their order."""
        n = chain.n
        inertial = 10 * chain.bodies if self.natural else len(minimal_parameters(chain))
        friction = n if self.friction else 0
        sizes = {"inertial": inertial, "gravity": 3 if self.gravity else 0, "viscous": friction, "coulomb": friction}
        sizes |= {"offsets": n if self.offsets else 0, "rotors": n if self.rotors else 0}
        return sizes | {"geometry": len(geometry_constants(chain)) if self.geometry else 0}


@dataclass(frozen=True)
class Plant:
    """One plant over any scalar: its chain, and per joint viscous and Coulomb friction and offsets, if they vary."""

    chain: Chain
    viscous: list[Any]
    coulomb: list[Any]
    offsets: list[Any]

    @classmethod
    def of(cls, chain: Chain, varying: Varying, constants: list[Any]) -> Plant:
        """The plant of these constants."""
        left = iter(constants)
        parts = {name: _take(left, size) for name, size in varying.sizes(chain).items()}
        inertial = parts["inertial"]
        if varying.natural:
            links = tuple(Link.from_natural(tuple(inertial[k : k + 10])) for k in range(0, len(inertial), 10))
            real = chain.with_links(links)
        else:
            real = realise(chain, inertial)
        if varying.gravity:
            real = replace(real, gravity=Vec3(*parts["gravity"]))
        if varying.geometry:
            real = with_geometry(real, parts["geometry"])
        if varying.rotors:
            pairs = zip(real.joints, parts["rotors"], strict=True)
            real = replace(real, joints=tuple(replace(joint, rotor_inertia=x) for joint, x in pairs))
        if varying.friction:  # the loop handles dry friction itself
            pairs = zip(real.joints, parts["viscous"], strict=True)
            real = replace(real, joints=tuple(replace(joint, viscous=b) for joint, b in pairs))
        return cls(real, parts["viscous"], parts["coulomb"], parts["offsets"])

    def measured(self, q: list[Any]) -> list[Any]:
        """The encoder readings, which the controller gets."""
        return [x - o for x, o in zip(q, self.offsets, strict=True)] if self.offsets else q


def _take(left: Iterator[Any], count: int) -> list[Any]:
    return [next(left) for _ in range(count)]


def of_plant(chain: Chain, quantity: str, options: Options = Options()) -> Callable[..., Any]:
    """A quantity as a function of (chain of a plant, inputs, wrench), by the formulation cheapest at run time."""
    entry = QUANTITIES[quantity]
    asked = AT_RUN_TIME if "parameters" in entry.takes else Options()
    run = entry.formulation(Kernel(chain, quantity, options=asked).method, chain).run
    return lambda real, inputs, wrench=None: complete(entry, entry.physics, run, real, inputs, options, wrench)


@lru_cache(maxsize=64)
def plant_program(chain: Chain, quantity: str, options: Options, varying: Varying) -> Compiled | None:
    """A quantity compiled with a plant's constants as its last input."""
    entry = QUANTITIES[quantity]
    run = of_plant(chain, quantity, options)
    inputs = dict(entry.input_shapes(chain))
    wrench = {"wrench": (6,)} if options.tool_wrench else {}
    sizes = {**inputs, **wrench, "constants": (sum(varying.sizes(chain).values()),)}

    def function(*given: Any) -> Any:
        *arrays, constants = given
        plant = Plant.of(chain, varying, constants)
        return run(plant.chain, list(arrays[: len(inputs)]), arrays[-1] if wrench else None)

    asked = ("plant", chain, quantity, options, varying)
    make = partial(trace, quantity, function, sizes, entry.output_shapes(chain))
    return load_or_compile(asked, make, uniform=("constants",))


@dataclass(frozen=True, eq=False)
class Plants:
    """k arms with the same geometry: natural parameters (k, N, 10), and what else varies; None keeps the arm's value.

    `parameters` (k, p) are the minimal parameters of `natural`. `gravity` is (k, 3); `viscous` and `coulomb` (k, n) are
    given together; true positions are encoder readings plus `offsets` (k, n); `rotors` are rotor inertias (k, n).
    """

    arm: Arm
    natural: np.ndarray
    parameters: np.ndarray
    gravity: np.ndarray | None = None
    viscous: np.ndarray | None = None
    coulomb: np.ndarray | None = None
    offsets: np.ndarray | None = None
    rotors: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.natural)

    @cached_property
    def varying(self) -> Varying:
        """Which parameters are inputs of the programs."""
        joints = [joint.breakaway > 0 or joint.forces.load_friction > 0 for joint in self.arm.joints]
        friction = self.viscous is not None and self.coulomb is not None
        dry = np.logical_or(joints, (self.coulomb > 0).any(axis=0)) if self.coulomb is not None else ()
        there = [x is not None for x in (self.gravity, self.offsets, self.rotors)]
        return Varying(there[0], friction, there[1], there[2], tuple(bool(x) for x in dry))

    @cached_property
    def constants(self) -> np.ndarray:
        """The numbers of every plant, (k, size)."""
        varying = self.varying
        inertial = self.natural.reshape(len(self), -1) if varying.gravity else self.parameters
        parts = [inertial, self.gravity, self.viscous, self.coulomb, self.offsets, self.rotors]
        return np.hstack([part for part in parts if part is not None])

    def lanes(self, batch: tuple[int, ...]) -> Plants:
        """One plant per lane of a batch whose last axis runs over the plants."""
        if batch[-1:] != (len(self),):
            raise InputError(f"{len(self)} plants need a batch (..., {len(self)}), got {batch}")
        return self.some(np.tile(np.arange(len(self)), int(np.prod(batch[:-1], dtype=int))))

    def some(self, chosen: Any) -> Plants:
        """Some of the plants, in this order."""
        names = ("natural", "parameters", "gravity", "viscous", "coulomb", "offsets", "rotors")
        picked: dict[str, Any] = {name: None if (x := getattr(self, name)) is None else x[chosen] for name in names}
        out = replace(self, **picked)
        out.__dict__["varying"] = self.varying  # the same program for every part of them
        return out

    @property
    def breakaway(self) -> np.ndarray | None:
        """The breakaway friction, (k, n); None if friction does not vary."""
        if self.coulomb is None:
            return None
        from armdyn.simulation.programs import frictions  # that module imports this one

        pairs = zip(frictions(self.arm.chain), self.arm.joints, strict=True)
        excess = [float(friction.breakaway - joint.coulomb) for friction, joint in pairs]
        return np.where(np.array(self.varying.dry), self.coulomb + np.array(excess), 0.0)

    def quantity(self, name: str, *arrays: Any, options: Options = Options()) -> Any:
        """A quantity of every plant at true positions; the arrays' first axis runs over the plants.

        Friction and offsets are left to the caller. The arm's kernel with run-time parameters is used if gravity and
        rotor inertias do not vary, otherwise one that takes natural parameters.
        """
        entry, extra = QUANTITIES[name], (np.ndim(arrays[0]) - 2) * (1,)
        if "parameters" in entry.takes and self.gravity is None and self.rotors is None:
            kernel = self.arm.kernel(name, parameters="runtime", **_chosen(options))
            return kernel(*arrays, self.parameters.reshape(len(self), *extra, -1))
        if name == "regressor":  # its columns depend on gravity, and its values not on the links
            if self.gravity is not None:
                raise InputError("the regressor's columns depend on gravity's direction; natural_regressor has all")
            return self.arm.kernel(name)(*arrays)
        full = Varying(gravity=True, rotors=self.rotors is not None)
        gravity = np.tile(self.arm.gravity, (len(self), 1)) if self.gravity is None else self.gravity
        parts = [self.natural.reshape(len(self), -1), gravity, *([] if self.rotors is None else [self.rotors])]
        program = plant_program(self.arm.chain, name, options, full)
        if program is None:
            raise InputError(f"{name} of {self.arm.name} has no numbers")
        return program(*arrays, np.hstack(parts).reshape(len(self), *extra, -1))

    def energy(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Kinetic and potential energy of states (k, times, n)."""
        return np.asarray(self.quantity("kinetic_energy", q, qd) + self.quantity("potential_energy", q))


def _chosen(options: Options) -> dict[str, Any]:
    """The options that differ from the usual ones, as `Arm.kernel` takes them."""
    return {f.name: value for f in fields(options) if (value := getattr(options, f.name)) != f.default}
