"""The types `Quantity` and `Formulation`; the formulations themselves are in each quantity's own folder.

A `Quantity` holds every fact about a quantity. Programs, kernels, the arm's attributes, C output, commands and
documentation read it here and nowhere else (docs/adr/0011-registry-and-search.md).

`units` gives the units of inputs and outputs, as text for headers and read-me files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

from armdyn.chain import Chain, Placement
from armdyn.errors import InputError, choose
from armdyn.uses import refusal

Run = Callable[..., Any]  # (chain, *inputs) -> nested lists of scalars
Size = int | str  # a number, or a key of `SIZES`
Ports = tuple[tuple[str, tuple[Size, ...]], ...]  # name and shape of each input or output
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def _minimal(chain: Chain) -> int:
    """The number of minimal parameters."""
    from armdyn.parameters import minimal_parameters  # a table of quantities needs none

    return len(minimal_parameters(chain))


# Symbolic sizes in shapes: the lengths of q and of q̇ (both n unless the base floats), the numbers of bodies, of minimal
# parameters and of natural parameters.
SIZES: dict[str, Callable[[Chain], int]] = {
    "nq": lambda chain: chain.nq,
    "nv": lambda chain: chain.nv,
    "N": lambda chain: chain.bodies,
    "F": lambda chain: chain.bodies,  # unless `Options.frames` gives others
    "C": lambda chain: 1,  # the tool, unless `Options.frames` gives others
    "p": _minimal,
    "10N": lambda chain: 10 * chain.bodies,
}


AXES = ("base", "local")  # in which a Jacobian is expressed
PARAMETERS = ("baked", "runtime", "geometry")  # which parameters of the arm, if any, are a program's last input


@dataclass(frozen=True)
class Options:
    """Options of a kernel beyond quantity and formulation; a quantity's `takes` lists those that apply to it.

    `friction` adds the joints' friction. `tool_wrench` adds a last input, the wrench (force, torque) that the
    environment exerts on the arm at the tool's origin, in base axes. `frame` is (k, placement on link k) and replaces
    the tool, where k = 0 is the base. `frames` are several of these, at which as many wrenches act, concatenated in
    one input, or to which a quantity of frames ("F") or of links in their own axes refers. `axes` are those of a
    Jacobian: "base" or "local", the frame's own. `parameters="runtime"` adds a last input, the minimal parameters,
    and `parameters="geometry"` the constants of the geometry (`armdyn.chain.geometry`), unless the quantity has
    `own_geometry`. `rows` are those of each frame's Jacobian, counted from 0, that are held; none means all six.
    `damping` is added to the diagonal of what a wrench on them accelerates. `derivatives` names inputs: the outputs
    are then the exact partial derivatives with respect to them, which every quantity has.
    `base_acceleration` adds the acceleration of a base that moves without turning (a vehicle, a lift), (3,) in base
    axes, as an input: it acts like gravity. `packed` gives the upper triangle of a symmetric matrix, row by row.
    """

    friction: bool = False
    tool_wrench: bool = False
    frame: tuple[int, Placement] | None = None
    parameters: str = "baked"
    derivatives: tuple[str, ...] = ()
    frames: tuple[tuple[int, Placement], ...] = ()
    axes: str = "base"
    rows: tuple[tuple[int, ...], ...] = ()
    damping: float = 0.0
    base_acceleration: bool = False
    packed: bool = False


@dataclass(frozen=True)
class Formulation:
    """One published algorithm for a quantity: a pure function `run(chain, *inputs)`, generic over the scalar type."""

    key: str
    run: Run
    source: str  # a key of the bibliography, "" for ours
    summary: str
    # Keyword arguments of `run` that change its cost but not its result, for a chain; the default first.
    variants: Callable[[Chain], Sequence[Mapping[str, Any]]] = lambda chain: ({},)
    # A dedicated algorithm for the derivatives with respect to all inputs, one matrix per input, if there is one.
    derivatives: Run | None = None
    made_of: tuple[str, ...] = ()  # quantities that `run` takes as keywords, each by its cheapest formulation
    reference_only: bool = False  # to test or compare others against; `auto` never chooses it
    serial_only: bool = False  # for serial chains only; `auto` skips it for a tree
    no_mimics: bool = False  # needs a coordinate for every joint; `auto` skips it for a robot with mimic joints
    tree_inertia: bool = False  # needs an inertia matrix of links and rotors alone: no inertia along a tendon

    def refusal(self, chain: Chain) -> str:
        """The reason why the formulation cannot be run on this chain, "" if it can."""
        needs = [*(("serial chain", "fixed base") * self.serial_only), *(("coordinates",) * self.no_mimics)]
        needs += ("inertia of links",) * self.tree_inertia
        return next(filter(None, (refusal(need, chain) for need in needs)), "")

    def serves(self, chain: Chain) -> bool:
        """Whether the formulation can be run on this chain."""
        return not self.refusal(chain)


Methods = tuple[Formulation, ...]


def definition(run: Run, summary: str) -> Methods:
    """The formulations of a quantity that has only its definition."""
    return (Formulation("definition", run, "", summary),)


def recursive(run: Run, check: Run, summary: str) -> Methods:
    """A recursion of ours, and the sum over the links that defines the quantity."""
    return (
        Formulation("recursive", run, "", summary),
        Formulation("definition", check, "", "sum over the links"),
    )


Physics = Callable[[Run, Chain, list[Any], Options, Any], Any]


def nothing_added(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """The formulation without additions."""
    return run(chain, *inputs)


@dataclass(frozen=True)
class Quantity:
    """A quantity of an arm: its inputs, outputs, options and formulations, the default first.

    The facts are here; the functions are named by their place in `armdyn.formulations` and imported at first use, so
    that listing quantities loads no algorithm.
    """

    name: str
    inputs: Ports
    outputs: Ports
    methods_in: str  # "module.NAME" of the tuple of its formulations, the default first
    summary: str  # a short phrase, for tables and comments
    doc: str  # the docstring of the arm's attribute, to which shapes are added
    takes: tuple[str, ...] = ()  # the fields of `Options` that apply to it; "parameters": at run time
    # Rotor inertia, friction and wrench, added outside the recursion (docs/adr/0003-extra-physics.md).
    physics_in: str = ""  # the name of a function of `physics`, "" if nothing is added
    massless: bool = False  # meaningful for an arm whose links have no inertia: geometry, friction, regressors
    link_frames: bool = False  # needs links and frames as given: no frame moved along its axis, no rotor merged
    own_geometry: bool = False  # its outputs depend on the structure of the geometry, which cannot be a run-time input
    of_body: bool = (
        False  # its first inputs are a body's mass, com and inertia about com: kernels reject impossible ones
    )
    dof: int = 0  # the degrees of freedom that it needs, at the tool and in its default options
    of_configuration: bool = False  # of configurations as such: no mimic joint or plain tree enters it
    derivative_kernel: bool = False  # the arm has an attribute for its derivatives with respect to all inputs
    inverse_of: str = ""  # the quantity that it inverts for the last input: its derivatives follow from that one's
    in_c: bool = False  # among the quantities that `emit_c` writes by default

    @property
    def methods(self) -> Methods:
        """Its formulations, the default first."""
        return cast(Methods, _imported(self.methods_in))

    @property
    def physics(self) -> Physics:
        """What is added outside the recursion."""
        return cast(Physics, _imported(f"physics.{self.physics_in}")) if self.physics_in else nothing_added

    @property
    def at_tool(self) -> bool:
        """Whether it refers to the tool, or to a frame in its place."""
        return "frame" in self.takes and "tool_wrench" not in self.takes

    @property
    def of_links(self) -> bool:
        """Whether it is a quantity of every link's frame as in the file, or of other frames in their place."""
        return self.outputs[0][1][:1] == ("F",)

    @property
    def of_motion(self) -> bool:
        """Whether it depends on the configuration or motion; if not, it is the same in any coordinates."""
        return any(name in (Q[0], QD[0]) for name, _ in self.inputs)

    def formulation(self, key: str, chain: Chain | None = None) -> Formulation:
        """The formulation `key`; the error lists the available ones if it does not exist or does not fit the chain."""
        methods = {m.key: m for m in self.methods}
        found = methods[choose(f"method of {self.name}", key, methods)]
        if chain is not None and not found.serves(chain):
            others = ", ".join(m.key for m in self.methods if m.serves(chain)) or "none"
            raise InputError(f"{self.name} by {key} {found.refusal(chain)}; available: {others}")
        return found

    def input_shapes(self, chain: Chain) -> Shapes:
        """The inputs with their shapes for this chain."""
        return shapes(self.inputs, chain)

    def output_shapes(self, chain: Chain, frames: int = 0) -> Shapes:
        """The outputs with their shapes for this chain, and for this many `Options.frames`."""
        found = shapes(self.outputs, chain)
        if not frames:
            return found
        per_frame = [shape[:1] in (("F",), ("C",)) for _, shape in self.outputs]
        return tuple(
            (name, (frames, *shape[1:]) if each else shape)
            for (name, shape), each in zip(found, per_frame, strict=True)
        )


@cache
def _imported(place: str) -> Any:
    """The object at "module.NAME" below `armdyn.formulations`."""
    module, name = place.rsplit(".", 1)
    return getattr(import_module(f"armdyn.formulations.{module}"), name)


def shapes(ports: Ports, chain: Chain) -> Shapes:
    """Ports with their shapes for this chain."""
    return tuple((name, tuple(SIZES[s](chain) if isinstance(s, str) else s for s in shape)) for name, shape in ports)


Q = ("q", ("nq",))
QD = ("qd", ("nv",))
QDD = ("qdd", ("nv",))
QD_REF = ("qd_ref", ("nv",))
QDD_REF = ("qdd_ref", ("nv",))
TAU = ("tau", ("nv",))


_FORCE = "{force}"
# By the name of the port; a name with several meanings is qualified by its quantity.
_UNITS = {
    "q": "{q}",
    "qd": "{q}/s",
    "qdd": "{q}/s²",
    "tau": _FORCE,
    "b": _FORCE,
    "g": _FORCE,
    "wrench": "N and N m",
    "base_acceleration": "m/s²",
    "parameters": "SI",
    "J": "SI",
    "dJ": "SI",
    "c": "m",
    "pose.T": "rotation, and m",
    "link_poses.T": "rotation, and m",
    "dh_poses.T": "rotation, and m",
    "goal": "rotation, and m",
    "e": "m and rad",
    "q0": "{q}",
    "q1": "{q}",
    "q_next": "{q}",
    "frame_velocity.v": "m/s and rad/s",
    "frame_acceleration.a": "m/s² and rad/s²",
    "w": "N and N m",
    "kinetic_energy.T": "J",
    "V": "J",
    "U": "1",
    "mass": "kg",
    "com": "m, in the tool's axes",
    "inertia": "kg m²: xx, yy, zz, xy, xz, yz about com",
}

_PORTS = ("qd", "qdd", "tau", "b", "g")  # results with one entry per degree of freedom


def entry_units(chain: Chain, port: str) -> tuple[str, ...]:
    """The units of q, of a velocity or acceleration, or of joint forces, one per entry, a floating base's first."""
    text = _UNITS[port]
    kinds = [chain.joints[i].revolute for i in chain.independent]
    joints = [text.format(q="rad" if turns else "m", force="N m" if turns else "N") for turns in kinds]
    base = [text.format(q=q, force=force) for q, force in (("m", "N"), ("rad", "N m")) for _ in range(3)]
    if port == "q":
        base = ["m"] * 3 + ["1"] * 4
    return (*(base if chain.floating else ()), *joints)


def units(chain: Chain, quantity: str, port: str) -> str:
    """The unit of an input or output of a quantity; "SI" where its entries have several."""
    kinds = {chain.joints[i].revolute for i in chain.independent}
    mixed = len(kinds) > 1
    revolute = True in kinds
    q = "rad or m" if mixed else "rad" if revolute else "m"
    if chain.floating and port == "q":
        q = f"m, quaternion (x, y, z, w), {q}"
    force = "N m or N" if mixed or chain.floating else "N m" if revolute else "N"
    rate = f"({q})" if " " in q else q
    text = _UNITS.get(f"{quantity}.{port}", _UNITS.get(port, "SI"))
    return text.format(q=q if text == "{q}" else rate, force=force)


def result_units(chain: Chain, quantity: str, port: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """The unit of every entry of a result of this shape, in order; that of the whole where it is not known by entry."""
    if port in _PORTS and shape == (chain.nv,):
        return entry_units(chain, port)
    if port == "H" and shape == (chain.nv, chain.nv):
        turns = [unit == "N m" for unit in entry_units(chain, "tau")]
        return tuple(("kg", "kg m", "kg m²")[row + column] for row in turns for column in turns)
    text = units(chain, quantity, port)
    halves = text.split(" and ")
    if shape[-1:] == (6,) and len(halves) == 2:  # of a velocity or wrench: linear, then angular
        return tuple(halves[k % 6 >= 3] for k in range(math.prod(shape)))
    return (text,) * math.prod(shape)
