"""Several quantities of one state as one kernel, which shares their work: ``arm.kernel(("inertia_matrix", "bias"))``.

Its inputs are those of the quantities, each once, in the order in which they first appear; a wrench and run-time
parameters come last. Its results are those of the quantities, in their order.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options, Shapes
from armdyn.graph.program import ColumnProgram, Program
from armdyn.kernels import describe
from armdyn.kernels.describe import OfObject
from armdyn.kernels.kernel import COLUMNS, Kernel, precision
from armdyn.programs.assemble import Assembly, assemble
from armdyn.programs.joint import Part, joint_inputs, joint_program, joint_values
from armdyn.values import cached_property


class SeveralQuantities(Kernel):
    """A kernel whose result is the tuple of the results of its `parts`, kernels of one arm."""

    __doc__ = OfObject(describe.documentation, __doc__)

    def __init__(self, parts: tuple[Kernel, ...], dtype: str | None = None) -> None:
        if not parts:
            raise InputError('several quantities are given by their names: ("inertia_matrix", "bias"); got none')
        bodies = [part.quantity for part in parts if part._of_body]
        if bodies:
            raise InputError(f"{bodies[0]} is no quantity of a state: call it by itself")
        names = [part.__name__ for part in parts]
        if len(set(names)) < len(names):
            raise InputError(f"{next(n for n in names if names.count(n) > 1)} is named twice among the quantities")
        first = parts[0]
        self.parts, self.dtype = parts, dtype
        self.chain, self.backend, self.device = first.chain, first.backend, first.device
        self.frames, self.links = first.frames, first.links
        self.quantity = "_and_".join(names)
        self.options = Options()
        self._of_body = False
        own = tuple(port for part in parts for port in part._ports)
        self._ports = tuple(dict.fromkeys(own))
        self.option_names = tuple(
            dict.fromkeys(name for part in parts for name in part.option_names if name != "derivatives")
        )
        self._calls = {}
        self._compiled = None

    @cached_property
    def method(self) -> str:
        """The formulations of the quantities."""
        return " + ".join(part.method for part in self.parts)

    @property
    def asked(self) -> tuple[Any, ...]:
        """What the program depends on."""
        return self.chain, "several quantities", self._plans

    @cached_property
    def _plans(self) -> tuple[Part, ...]:
        return tuple((part.quantity, part.method, part.options) for part in self.parts)

    @property
    def ports(self) -> tuple[Shapes, Shapes]:
        """The inputs and the results, with their shapes."""
        sides = [part.ports for part in self.parts]
        named = [(part, *port) for part, (_, ports) in zip(self.parts, sides, strict=True) for port in ports]
        count = Counter(port for _, port, _ in named)
        results = ((port if count[port] == 1 else f"{part.__name__}_{port}", shape) for part, port, shape in named)
        return joint_inputs(ports for ports, _ in sides), tuple(results)

    @cached_property
    def assembly(self) -> Assembly:
        """The function over scalars behind this kernel, with the shapes of its arrays."""
        made = [assemble(self.chain.floats, *plan) for plan in self._plans]
        inputs, outputs = self.ports
        return Assembly(lambda *given: joint_values(made, dict(zip(dict(inputs), given, strict=True))), inputs, outputs)

    @property
    def program(self) -> Program:
        """The graph this kernel is compiled from."""
        return joint_program(self.chain, self.quantity, self._plans, *self.ports)

    @property
    def compiled_program(self) -> Program | ColumnProgram:
        """The program that is compiled to machine code."""
        return self.program

    def _like(self, options: Options, method: str, dtype: str | None) -> Kernel:
        return SeveralQuantities(self.parts, dtype)

    def variant(self, **choices: Any) -> Kernel:
        """The kernel with other options: each quantity gets those that it takes."""
        if "dtype" in choices:
            dtype = precision(choices.pop("dtype"))
            return self.variant(**choices)._like(self.options, "", dtype)
        if "derivatives" in choices:
            raise InputError(
                "derivatives are quantities of their own here: name forward_dynamics_derivatives or "
                f"inverse_dynamics_derivatives among the quantities; got derivatives={choices['derivatives']!r}"
            )
        for name in choices:
            if name not in self.option_names:
                choose(f"option of {self.quantity}", name, (*self._ports, "out", "threads", *self.option_names))
        made = (part.variant(**_taken(part, choices)) for part in self.parts)
        return SeveralQuantities(tuple(made), self.dtype)

    def sympy(self, parameters: str = "numbers", **choices: Any) -> Any:
        """The same as readable SymPy expressions, one result per quantity."""
        parts = self.variant(**choices).parts if choices else self.parts  # type: ignore[attr-defined]
        return tuple(part.sympy(parameters) for part in parts)

    def __reduce__(self) -> Any:
        return SeveralQuantities, (self.parts, self.dtype)


def _taken(part: Kernel, choices: dict[str, Any]) -> dict[str, Any]:
    """The options that a quantity takes. What does not depend on inertias takes no minimal parameters."""
    entry = QUANTITIES[part.quantity]
    names = {*entry.takes, *COLUMNS.get(part.quantity, ()), "parameters"}
    if choices.get("parameters") == "runtime" and entry.massless and "parameters" not in entry.takes:
        names -= {"parameters"}
    if "tool_wrench" in entry.takes and choices.get("tool_wrench") is None:
        names -= {"frame"}  # there it says where the wrench acts
    return {name: x for name, x in choices.items() if name in names}
