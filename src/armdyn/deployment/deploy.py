"""`armdyn.deploy`: writes the code of an arm for one of the targets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from armdyn.arm import Arm
from armdyn.codegen.text.c import Function
from armdyn.control import Controller
from armdyn.deployment import c, cpp, fmu, objects
from armdyn.deployment.controllers import chosen as chosen_controllers
from armdyn.deployment.request import Request, Target
from armdyn.errors import InputError, choose
from armdyn.files.text import write_folder
from armdyn.kernels.emission import Progress

TARGETS: dict[str, Target] = {t.name: t for t in (c.TARGET, cpp.TARGET, fmu.TARGET, objects.TARGET)}


def deploy(
    arm: Arm,
    directory: str | os.PathLike[str],
    target: str = "c",
    quantities: Sequence[str] | None = None,
    *,
    dtype: str | None = None,
    parameters: str = "runtime",
    friction: bool = True,
    controllers: Sequence[str | Controller] = (),
    frame: str | None = None,
    functions: Mapping[str, Function] | None = None,
    cpus: Sequence[str] = (),
    measure_stack: bool = True,
    progress: Progress | None = None,
) -> list[Path]:
    """Write a folder with the arm's dynamics for a controller; it builds and tests itself with ``make test``.

    Parameters
    ----------
    arm
        The arm.
    directory
        The folder. A new one appears whole or not at all; in an existing one files of the same names are replaced and
        all others are kept, so use one folder per target.
    target
        "c": C99, a header and a source. "cpp": one C++17 header. "fmu": FMI 3.0 co-simulation and model exchange of
        the forward dynamics. "object": relocatable objects for Cortex-M, AArch64 and RISC-V, with a header.
    quantities
        The quantities to write; by default those that controllers need most often.
    dtype
        "double" or "float" ("float64" and "float32" mean the same). By default double; for objects the widest that
        the processor has in hardware.
    parameters
        "runtime": the minimal parameters are an argument of every call, so that a payload or a better estimate needs
        no new code; ``payload_parameters``, which computes them for a payload, is written too. "baked": they are
        constants, which takes fewer operations.
    friction
        Whether inverse and forward dynamics include joint friction.
    controllers
        Control laws to write beside the quantities: names in `armdyn.control.CONTROLLERS`, or
        results of `armdyn.controller`, whose gains become the defaults.
    frame
        The frame to use as the tool; a robot with several tips has no default tool.
    functions
        Further programs to write beside the quantities, by name.
    cpus
        The processors that objects are made for; by default all of `armdyn.codegen.embedded.cpus.CPUS`.
    measure_stack
        If gcc is installed, compile the code once and state the stack usage of each function in the README.
    progress
        Called with (done, total, what is being done).

    Returns
    -------
    list of Path
        The files written.
    """
    chosen = TARGETS[choose("target", target, TARGETS)]
    if cpus and chosen is not objects.TARGET:
        raise InputError(f"processors are for the target object; got {', '.join(cpus)} for the target {target}")
    more, laws = functions or {}, chosen_controllers(arm, controllers, friction)
    if laws and chosen is fmu.TARGET:
        names = ", ".join(law.law.name for law in laws)
        raise InputError(f"controllers are for the targets c, cpp and object; got {names} for the target {target}")
    request = Request(arm, quantities, dtype, parameters, friction, frame, more, measure_stack, progress, cpus, laws)
    return write_folder(directory, chosen.files(request))
