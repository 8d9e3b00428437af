"""The request that every target takes: the arm, the quantities to write, and the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from armdyn.arm import Arm
from armdyn.codegen.text.c import Function, Package, Struct
from armdyn.control import Controller
from armdyn.deployment.controllers import programs
from armdyn.errors import choose
from armdyn.html import visible
from armdyn.kernels import emission
from armdyn.kernels.emission import Frame, Progress
from armdyn.options import CodeOptions

PAYLOAD = "payload_parameters"
HELD = Struct(
    "payload",
    "A body that the tool holds, for payload_parameters and the controllers; point masses have no inertia.",
    (
        ("mass", 0, "kg"),
        ("com", 3, "centre of mass in the tool frame, m"),
        ("inertia", 6, "about com, in the tool's axes: xx, yy, zz, xy, xz, yz, kg m²"),
    ),
)
Files = Mapping[str, bytes]  # by their names in the folder


@dataclass(frozen=True)
class Request:
    """An arm, and what a target writes for it.

    `functions` are further programs (a controller, say) written beside the quantities, each with its test vectors.
    """

    arm: Arm
    quantities: Sequence[str] | None = None  # None: what `emit_c` writes if nothing is named
    dtype: str | None = None  # None: double, or what the processor has
    parameters: str = "runtime"
    friction: bool = True
    frame: str | None = None  # the frame used as the tool; None: the arm's own, see `Arm.tool`
    functions: Mapping[str, Function] = field(default_factory=dict)
    measure_stack: bool = True  # where gcc is found
    progress: Progress | None = None
    cpus: Sequence[str] = ()  # the processors of the target `object`; empty: all of them
    controllers: tuple[Controller, ...] = ()
    binary: bool = True  # FMU: compile a library for this machine, if it has a C compiler
    error_bound: bool | Mapping[str, Any] = False  # whether headers state bounds of rounding errors; or ranges by input

    @classmethod
    def of(cls, arm: Arm, quantities: Sequence[str] | None, code: CodeOptions, **beside: Any) -> Request:
        """The request for code like this; `beside` are fields that are no options of the code."""
        own = {one.name for one in fields(cls)}
        options = {one.name: getattr(code, one.name) for one in fields(code) if one.name in own}
        return cls(arm, quantities, **options, **beside)

    @property
    def place(self) -> Frame | None:
        """The frame used as the tool, if one is named."""
        named = {frame.name: (frame.link, frame.placement) for frame in self.arm.frames}
        return None if self.frame is None else named[choose("frame", self.frame, named)]

    @property
    def wanted(self) -> tuple[str, ...]:
        """The quantities to write; with run-time parameters, `payload_parameters` is one of them."""
        chain = self.arm.chain
        named = emission.default(chain, self.place) if self.quantities is None else tuple(self.quantities)
        if not self.functions:
            emission.check_some(named)
        has_tool = chain.tool_carrier > 0 or self.frame is not None
        return (*named, *([PAYLOAD] if self.parameters == "runtime" and has_tool and PAYLOAD not in named else []))

    def package(self, language: str = "C99") -> Package:
        """The functions with their test vectors, sizes and parameters, for a target that writes text."""
        from armdyn import __version__, ranges

        arm = self.arm
        given = self.error_bound if isinstance(self.error_bound, Mapping) else {}
        made = emission.package(
            visible(arm.name),
            arm.chain,
            self.wanted,
            self.dtype or "double",
            self.parameters,
            self.friction,
            visible(arm.source),
            __version__,
            language=language,
            frame=self.place,
            progress=self.progress,
            links=arm.own_links,
            ranges=None if self.error_bound is False else ranges.for_rounding(arm, given),
        )
        functions = {**made.functions, **programs(self.controllers), **self.functions}
        held = PAYLOAD in functions or any(
            e.of_payload for c in self.controllers for e in (*c.law.gains, *c.law.outputs)
        )
        return replace(made, functions=functions, structs=(HELD,) if held else ())


@dataclass(frozen=True)
class CodeTarget:
    """A kind of folder: the function that makes its files, and which options apply to it."""

    name: str
    files: Callable[[Request], Files]
    tools: tuple[str, ...]  # without which `make test` cannot run
    quick: tuple[str, ...] = ()  # arguments of make that omit optimization and optional parts of the test
    controllers: bool = False  # whether control laws can be written
    cpus: bool = False  # whether it is compiled for selected processors
    error_bound: bool = False  # whether bounds of rounding errors can be stated
    binary: bool = False  # whether it contains a library for this machine
    missing: Callable[[], str] = str  # what else its test lacks on this machine; "" for nothing
