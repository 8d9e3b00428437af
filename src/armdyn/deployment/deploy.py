"""`armdyn.deploy`: writes the code of an arm for one of the targets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, Unpack

from armdyn.arm import Arm, as_arm
from armdyn.codegen.text.c import Function
from armdyn.control import Controller
from armdyn.deployment import manifest
from armdyn.deployment.controllers import chosen as chosen_controllers
from armdyn.deployment.request import CodeTarget, Files, Request
from armdyn.deployment.trial import trial
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.kernels import emission
from armdyn.kernels.emission import Progress
from armdyn.options import DEPLOY_TARGETS, CodeOptions, DeployKeywords, flat_keywords
from armdyn.programs.assemble import must_have_inertia

Documented = TypeVar("Documented", bound=Any)


class Targets(Mapping[str, CodeTarget]):
    """The targets by name; the module of a target is imported when the target is looked up."""

    def __getitem__(self, name: str) -> CodeTarget:
        module, _, target = DEPLOY_TARGETS[name][0].partition(".")
        found: CodeTarget = getattr(import_module(f"armdyn.deployment.{module}"), target)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(DEPLOY_TARGETS)

    def __len__(self) -> int:
        return len(DEPLOY_TARGETS)


TARGETS = Targets()


def _listing_targets(function: Documented) -> Documented:
    """Fill the targets into a docstring."""
    lines = [f'- "{name}": {summary}' for name, (_, summary) in DEPLOY_TARGETS.items()]
    function.__doc__ = (function.__doc__ or "").replace("{TARGETS}", "\n        ".join(lines))
    return function


@_listing_targets
@flat_keywords(code=CodeOptions)
def deploy(
    arm: Arm | str | os.PathLike[str],
    directory: str | os.PathLike[str],
    target: str = "c",
    quantities: Sequence[str] | None = None,
    *,
    controllers: Sequence[str | Controller] = (),
    functions: Mapping[str, Function] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    code: CodeOptions = CodeOptions(),
    **keywords: Unpack[DeployKeywords],
) -> list[Path]:
    """Write a folder with the arm's dynamics for a controller; it builds and tests itself with ``make test``.

    Parameters
    ----------
    arm
        The arm: an Arm, a catalogue name or a path.
    directory
        The folder. A new one appears whole or not at all. In a folder that was written by armdyn, the files of the
        last run that this one does not write are removed. A folder that contains any other files is refused, unless
        `overwrite` is set. Names that begin with a dot are ignored.
    target
        What is written, one of

        {TARGETS}
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
        The frame to use as the tool, also by controllers given by name; the arm's own tool by default (`Arm.tool`).
    functions
        Further programs to write beside the quantities, by name.
    cpus
        The processors that objects are made for; by default all of `armdyn.codegen.embedded.CPUS`.
    measure_stack
        If gcc is installed, compile the code once and state the stack usage of each function in the README.
    build
        If make and a compiler are installed, build the folder and run its test (without optimization, in a temporary
        folder) before it is written. Code that fails is an error, and nothing is written. ``manifest.json`` has the
        result.
    binary
        For an FMU: compile a library for this machine, if it has a C compiler.
    error_bound
        For C and C++ with baked parameters: state bounds of the rounding errors in the header, within the arm's limits
        or within ranges by input as in `armdyn.rounding_error`.
    overwrite
        Write into a folder that contains other files, too: files of the same names are replaced, all others are kept.
    progress
        Called with (done, total, what is being done).
    code
        The keywords above as a record of `armdyn.options`, to be used more than once.

    Returns
    -------
    list of Path
        The files written.
    """
    chosen, arm = TARGETS[choose("target", target, TARGETS)], as_arm(arm, "deploy")
    manifest.check_folder(directory, overwrite)
    laws = chosen_controllers(arm, controllers, code.friction, code.frame)
    request = Request.of(arm, quantities, code, functions=functions or {}, controllers=laws, progress=progress)
    return manifest.write(directory, folder(chosen, request, code.build), overwrite)


def folder(target: CodeTarget, request: Request, build: bool = True) -> Files:
    """The files of a target with their manifest; built and tested before, if `build` is set and the tools are there."""
    check_options(target, request)
    contents = target.files(request)
    if build and request.progress:
        request.progress(0, 1, "building and testing")
    about: dict[str, Any] = {
        "armdyn deploy": 1,
        "target": target.name,
        "arm": {"name": request.arm.name, "fingerprint": request.arm.fingerprint},
        "test": trial(target, contents) if build else "not run, as requested",
    }
    return manifest.with_manifest(contents, about)


def check_options(target: CodeTarget, request: Request) -> None:
    """An error if options do not apply to the target or together, or if the arm does not have the quantities."""
    chain = request.arm.chain
    names = request.quantities or emission.default(chain)
    for name in names:  # also where the parameters are arguments: these are zero
        if (quantity := name.removesuffix("_derivatives")) in QUANTITIES:
            must_have_inertia(chain, quantity)
    if request.error_bound is not False and request.parameters != "baked":
        raise InputError("bounds of rounding errors need parameters='baked' (--parameters baked): others have no range")
    given: dict[str, tuple[str, Sequence[str]]] = {
        "controllers": ("controllers are", [law.law.name for law in request.controllers]),
        "cpus": ("processors are", request.cpus),
        "error_bound": ("bounds of rounding errors are", [] if request.error_bound is False else ["error_bound"]),
        "binary": ("binary=False (--no-binary) is", [] if request.binary else ["it"]),
    }
    for capability, (subject, values) in given.items():
        if values and not getattr(target, capability):
            names = [name for name, other in TARGETS.items() if getattr(other, capability)]
            listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
            raise InputError(
                f"{subject} for the target{'s' if names[1:] else ''} {listed}; got {', '.join(values)} "
                f"for the target {target.name}"
            )
