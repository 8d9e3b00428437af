"""An arm's quantities as C99 files for a controller."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armdyn.chain import Chain, Placement
from armdyn.codegen.text.c import Function, Package, c_type, files
from armdyn.codegen.text.names import identifier
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.errors import InputError, choose
from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.formulations.registry import Options, units
from armdyn.kernels.kernel import auto
from armdyn.kernels.rounding import Analysis, assumptions, largest_errors, must_be_bounded, precision
from armdyn.options import Arithmetic
from armdyn.parameters import minimal_parameters
from armdyn.programs.program import program

DEFAULT = tuple(name for name, quantity in QUANTITIES.items() if quantity.in_c)
AVAILABLE = (*QUANTITIES, *DERIVATIVES)
VECTORS = 5
Frame = tuple[int, Placement]  # its link, counted from 1 (0 is the base), and its placement on that link
Progress = Callable[[float, float, str], None]  # done, total, what is being done
TRIG_ULPS = Arithmetic().trig_ulps  # the assumed error of the C library's sine and cosine
ERROR_BOXES = 4096  # into which the ranges are subdivided
UNCHECKED = (
    "\nThe payload is not checked. It must be physically possible (non-negative mass, an inertia that a rigid body can"
    "\nhave, no NaN), or the negative of such a payload, which removes it. arm.payload_parameters in Python checks it."
)


def default(chain: Chain, frame: Frame | None = None) -> tuple[str, ...]:
    """The quantities written by default; quantities at the tool only if there is a tool, or a frame for it."""
    placed = frame is not None or chain.tool_carrier > 0
    return DEFAULT if placed else tuple(name for name in DEFAULT if not QUANTITIES[name].at_tool)


def c_files(
    name: str,
    chain: Chain,
    quantities: Sequence[str] = DEFAULT,
    dtype: str = "double",
    parameters: str = "baked",
    friction: bool = False,
    source: str = "",
    version: str = "",
    ranges: Mapping[str, Any] | None = None,
    links: tuple[Frame, ...] = (),
) -> dict[str, str]:
    """File name -> text: header, source, test program with vectors, Makefile.

    With `ranges` (n, 2) by input, the header states bounds of the rounding errors. `links` are the links' frames as in
    the file, if they are not the bodies' own.
    """
    check_some(quantities)
    return files(
        package(name, chain, quantities, dtype, parameters, friction, source, version, ranges=ranges, links=links)
    )


def package(
    name: str,
    chain: Chain,
    quantities: Sequence[str] = DEFAULT,
    dtype: str = "double",
    parameters: str = "baked",
    friction: bool = False,
    source: str = "",
    version: str = "",
    language: str = "C99",
    frame: Frame | None = None,
    progress: Progress | None = None,
    ranges: Mapping[str, Any] | None = None,
    links: tuple[Frame, ...] = (),
) -> Package:
    """The language-independent contents of an arm's files: functions with test vectors, sizes and parameters."""
    dtype = c_type(dtype)
    asked = requests(quantities, parameters, friction, frame, links)
    minimal = minimal_parameters(chain) if parameters == "runtime" else None
    values = np.array([float(v) for v in minimal.values]) if minimal is not None else None
    functions = {}
    for k, (key, (plain, options)) in enumerate(asked.items()):
        if progress:
            progress(k, len(asked), key.replace("_", " "))
        functions[key] = _function(chain, plain, options, values)
    constants = {"N": chain.n} | ({"NQ": chain.nq, "NV": chain.nv} if chain.floating else {})
    constants |= {"P": len(minimal)} if minimal is not None else {}
    comment = [f"{name}: dynamics in straight-line {language}, written by armdyn {version}."]
    comment += [f"Arm: {' '.join(source.split())}"] if source else []
    if ranges is not None:
        functions = {key: _with_errors(one, dtype, ranges) for key, one in functions.items()}
        comment += ["Bounds of rounding errors hold for inputs within the ranges given with them, provided that"]
        comment += [f"- {line};" for line in assumptions(dtype, TRIG_ULPS)]
    comment += ["SI units. The arrays of a call must not overlap. No memory allocation, no dependency except libm."]
    pairs = list(zip(minimal.names, map(float, minimal.values), strict=True)) if minimal is not None else []
    return Package(name, _safe("\n".join(comment)), functions, constants, pairs, dtype)


def check_some(quantities: Sequence[str]) -> None:
    """An error where nothing is to be written."""
    if not quantities:
        raise InputError(f"no quantity to write; available: {', '.join(AVAILABLE)}")


def requests(
    quantities: Sequence[str],
    parameters: str,
    friction: bool,
    frame: Frame | None = None,
    links: tuple[Frame, ...] = (),
) -> dict[str, tuple[str, Options]]:
    """The functions to be written, by name: the quantity, and those of the options that it takes."""
    quantities = (quantities,) if isinstance(quantities, str) else quantities
    choose("parameters", parameters, ("baked", "runtime"))
    asked = {}
    for key in dict.fromkeys(quantities):
        plain, wrt = DERIVATIVES.get(choose("quantity", key, AVAILABLE), (key, ()))
        takes = QUANTITIES[plain].takes
        options = Options(
            frame=frame if QUANTITIES[plain].at_tool else None,
            frames=links if QUANTITIES[plain].of_links else (),
            friction=friction and "friction" in takes,
            parameters="runtime" if parameters == "runtime" and "parameters" in takes else "baked",
            derivatives=wrt,
        )
        asked[key] = plain, options
    return asked


def _safe(text: str) -> str:
    """Text escaped so that it cannot end a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def _function(chain: Chain, quantity: str, options: Options, parameters: Any) -> Function:
    entry = QUANTITIES[quantity]
    method = auto(chain, quantity, options)
    formulation = entry.formulation(method)
    made = program(chain, quantity, method, options)
    comment = f"{entry.summary}{', with friction' if options.friction else ''}, by {method}: {formulation.summary}"
    if options.derivatives:
        comment = f"partial derivatives of the {entry.summary} with respect to {', '.join(options.derivatives)}"
    comment += UNCHECKED if entry.of_body else ""
    comment += f"\nSource: {'armdyn' if options.derivatives else formulation.source or 'armdyn'}"
    inputs = _vectors(chain, made, parameters)
    with np.errstate(all="ignore"):
        outputs = compile_numpy(made)(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    ports = [port.name for port in (*made.inputs, *made.outputs)]
    shown = {} if options.derivatives else {port: units(chain, quantity, port) for port in ports}
    return Function(made, _safe(comment), inputs, tuple(np.asarray(x) for x in outputs), shown)


def _with_errors(function: Function, dtype: str, ranges: Mapping[str, Any]) -> Function:
    """The function with its rounding-error bounds in the comment, or with the reason why there are none."""
    program = function.program
    lines = []
    try:
        must_be_bounded(program)
        inputs = [(port.name, _range_of(port, ranges)) for port in program.inputs]
        analysis = Analysis(program, precision(dtype, TRIG_ULPS), np.concatenate([box for _, box in inputs]))
        found = largest_errors(analysis, len(inputs[0][1]), ERROR_BOXES)
        for port, errors in zip(
            program.outputs, np.split(found, np.cumsum([len(p.nodes) for p in program.outputs])[:-1]), strict=True
        ):
            lines.append(f"Rounding error of {port.name} at most, entry by entry:")
            lines += _wrapped([_upwards(x) for x in errors])
        for name, box in inputs:
            lines.append(f"for {name} within")
            lines += _wrapped([f"{low:g}..{high:g}" for low, high in box])
    except InputError as error:
        lines = [f"Rounding error: no bound. {error}"]
    return replace(function, comment="\n".join([function.comment, *lines]))


def _range_of(port: Any, ranges: Mapping[str, Any]) -> Any:
    if port.name not in ranges:
        raise InputError(f"The input {port.name} has no range; ranges are given for {', '.join(ranges)}")
    return ranges[port.name]


def _upwards(x: float) -> str:
    """Three digits, rounded up."""
    if x == 0:
        return "0"
    digits = 2 - math.floor(math.log10(x))
    return f"{math.ceil(x * 10.0**digits * (1 + 1e-12)) / 10.0**digits * (1 + 1e-12):.3g}" if digits < 300 else "1e-297"


def _wrapped(words: list[str]) -> list[str]:
    return [f"  {'  '.join(words[k : k + 6])}" for k in range(0, len(words), 6)]


def _vectors(chain: Chain, made: Any, parameters: Any) -> tuple[Any, ...]:
    """Reproducible test vectors, one per row."""
    rng = np.random.default_rng(len(made.order))
    arrays = []
    for port in made.inputs:
        if port.name == "parameters":
            arrays.append(np.tile(parameters, (VECTORS, 1)))
        else:
            arrays.append(np.round(rng.uniform(-1.5, 1.5, (VECTORS, *port.shape)), 3))
    return tuple(arrays)


__all__ = ["AVAILABLE", "DEFAULT", "Progress", "c_files", "identifier", "package"]
