"""What is to be deployed: an arm, which of its quantities and how; every target takes this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from armdyn.arm import Arm
from armdyn.codegen.text.c import Function, Package
from armdyn.control import Controller
from armdyn.deployment.controllers import programs
from armdyn.kernels import emission
from armdyn.kernels.emission import Progress

Files = Mapping[str, bytes]  # by their names in the folder


@dataclass(frozen=True)
class Request:
    """An arm and what a target is to write of it.

    `functions` are further programs (a controller, say) that stand beside the quantities, each with its test vectors.
    """

    arm: Arm
    quantities: Sequence[str] | None = None  # None: what `emit_c` writes if nothing is named
    dtype: str = "double"
    parameters: str = "runtime"
    friction: bool = True
    functions: Mapping[str, Function] = field(default_factory=dict)
    progress: Progress | None = None
    controllers: tuple[Controller, ...] = ()

    def package(self, language: str = "C99") -> Package:
        """The functions with their test vectors, sizes and parameters, for a target that writes text."""
        from armdyn import __version__

        arm = self.arm
        wanted = emission.default(arm.chain) if self.quantities is None else self.quantities
        made = emission.package(
            arm.name,
            arm.chain,
            wanted,
            self.dtype,
            self.parameters,
            self.friction,
            arm.source,
            __version__,
            language=language,
            progress=self.progress,
        )
        return replace(made, functions={**made.functions, **programs(self.controllers), **self.functions})


@dataclass(frozen=True)
class Target:
    """A kind of folder: what it is, and the function that makes its files."""

    name: str
    summary: str
    files: Callable[[Request], Files]
