"""What a quantity and a formulation are; the formulations stand in each quantity's own folder.

A `Quantity` carries every fact about what can be asked of an arm. Programs, kernels, the arm's attributes, C output,
commands and documentation read it here and nowhere else (docs/adr/0011-registry-and-search.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armdyn.chain import Chain, Placement
from armdyn.errors import InputError, choose
from armdyn.parameters import minimal_parameters

Run = Callable[..., Any]  # (chain, *inputs) -> nested lists of scalars
Size = int | str  # a number, or a name of `SIZES`
Ports = tuple[tuple[str, tuple[Size, ...]], ...]  # name and shape of each input or output
Shapes = tuple[tuple[str, tuple[int, ...]], ...]

# What a size in a shape stands for: the lengths of q and of its rates (both n but for a floating base), bodies, minimal
# parameters, natural parameters.
SIZES: dict[str, Callable[[Chain], int]] = {
    "nq": lambda chain: chain.nq,
    "nv": lambda chain: chain.nv,
    "N": lambda chain: chain.bodies,
    "p": lambda chain: len(minimal_parameters(chain)),
    "10N": lambda chain: 10 * chain.bodies,
}


PARAMETERS = ("baked", "runtime", "geometry")  # what of an arm's numbers a program has as its last input


@dataclass(frozen=True)
class Options:
    """What can be asked of a kernel beyond quantity and formulation; a quantity's `takes` says which of them it has.

    `friction` adds the joints' friction; `tool_wrench` adds a last input, the wrench (force, torque)
    that the surroundings exert on the arm at the tool's origin, in base axes; `frame` is (k, placement
    on link k) and stands for the tool, k = 0 being the base; `frames` are several of them, at which as many wrenches
    act, one after the other in one input; `parameters="runtime"` adds a last input, the minimal parameters, and
    `parameters="geometry"` the constants of the geometry (`armdyn.chain.geometry`), where `own_geometry` is not said;
    `derivatives` names inputs, and the outputs are the exact partial derivatives in them, which every quantity has.
    """

    friction: bool = False
    tool_wrench: bool = False
    frame: tuple[int, Placement] | None = None
    parameters: str = "baked"
    derivatives: tuple[str, ...] = ()
    frames: tuple[tuple[int, Placement], ...] = ()


@dataclass(frozen=True)
class Formulation:
    """One published way to compute a quantity: `run(chain, *inputs)`, pure, over any scalar."""

    key: str
    run: Run
    source: str  # a key of the bibliography, "" for ours
    summary: str
    # Where `run` leaves open what costs but does not change the result: keywords for this chain, the default first.
    variants: Callable[[Chain], Sequence[Mapping[str, Any]]] = lambda chain: ({},)
    # Where there is an algorithm of their own for them: the derivatives in all inputs, one matrix per input.
    derivatives: Run | None = None
    made_of: tuple[str, ...] = ()  # quantities that `run` takes as keywords, each by its cheapest formulation
    reference_only: bool = False  # there to compare others with: `auto` never chooses it
    serial_only: bool = False  # written for serial chains; `auto` passes over it for a tree
    no_mimics: bool = False  # needs a coordinate for every joint; `auto` passes over it for a robot with mimic joints

    def refusal(self, chain: Chain) -> str:
        """Why the formulation cannot be run on this chain, "" if it can."""
        if self.serial_only and not (chain.serial and not chain.floating):
            return "is for serial chains, this robot " + ("branches" if not chain.serial else "has a floating base")
        if self.no_mimics and chain.has_mimics:
            return "needs a coordinate for every joint, and this robot has mimic joints"
        return ""

    def serves(self, chain: Chain) -> bool:
        """Whether the formulation can be run on this chain."""
        return not self.refusal(chain)


Physics = Callable[[Run, Chain, list[Any], Options, Any], Any]


def nothing_added(run: Run, chain: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
    """The formulation as it is."""
    return run(chain, *inputs)


@dataclass(frozen=True)
class Quantity:
    """What can be asked of an arm: its inputs, outputs, options and every way to compute it, the default first."""

    name: str
    inputs: Ports
    outputs: Ports
    methods: tuple[Formulation, ...]
    summary: str  # a short phrase, for tables and comments
    doc: str  # what the arm's attribute says of itself; the shapes are added
    takes: tuple[str, ...] = ()  # the fields of `Options` that mean something for it; "parameters": at run time
    # Rotor inertia, friction and wrench, added outside the recursion (docs/adr/0003-extra-physics.md).
    physics: Physics = nothing_added
    link_frames: bool = False  # of the links and frames as given: no frame slid along its axis, no rotor merged
    own_geometry: bool = False  # its outputs belong to the structure of the arm's geometry, which is no run-time input
    of_body: bool = (
        False  # its first inputs are a body's mass, com and inertia about it: kernels refuse impossible ones
    )
    derivative_kernel: bool = False  # the arm has an attribute for its derivatives in all inputs
    inverse_of: str = ""  # the quantity that it solves for its last input: its derivatives follow from that one's
    in_c: bool = False  # among what `emit_c` writes if nothing is named

    @property
    def at_tool(self) -> bool:
        """Whether it is read at the tool, or at a frame that stands for it."""
        return "frame" in self.takes and "tool_wrench" not in self.takes

    @property
    def of_motion(self) -> bool:
        """Whether it depends on how the arm stands or moves; what does not is the same in any coordinates."""
        return any(name in (Q[0], QD[0]) for name, _ in self.inputs)

    def formulation(self, key: str, chain: Chain | None = None) -> Formulation:
        """The formulation of this key; an error that lists the others if there is none, or none for this chain."""
        methods = {m.key: m for m in self.methods}
        found = methods[choose(f"method of {self.name}", key, methods)]
        if chain is not None and not found.serves(chain):
            others = ", ".join(m.key for m in self.methods if m.serves(chain)) or "none"
            raise InputError(f"{self.name} by {key} {found.refusal(chain)}; available: {others}")
        return found

    def input_shapes(self, chain: Chain) -> Shapes:
        """The inputs with the numbers of this chain in their shapes."""
        return shapes(self.inputs, chain)

    def output_shapes(self, chain: Chain) -> Shapes:
        """The outputs with the numbers of this chain in their shapes."""
        return shapes(self.outputs, chain)


def shapes(ports: Ports, chain: Chain) -> Shapes:
    """Ports with the numbers of this chain in their shapes."""
    return tuple((name, tuple(SIZES[s](chain) if isinstance(s, str) else s for s in shape)) for name, shape in ports)


Q = ("q", ("nq",))
QD = ("qd", ("nv",))
QDD = ("qdd", ("nv",))
QD_REF = ("qd_ref", ("nv",))
QDD_REF = ("qdd_ref", ("nv",))
TAU = ("tau", ("nv",))
