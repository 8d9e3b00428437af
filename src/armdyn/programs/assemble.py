"""From a chain, a quantity and a formulation to one function of scalars, extra physics included.

Rotor inertia, friction and a wrench at the tool are the quantity's `physics`, added outside the recursions and the same
for every backend (docs/adr/0003-extra-physics.md).

Partial derivatives by dual numbers go through the same algorithm, without a graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from armdyn.algebra import Dual
from armdyn.chain import Chain
from armdyn.chain.canonical import canonical
from armdyn.chain.geometry import geometry_constants, with_geometry
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES, taking
from armdyn.formulations.coordinates import tangent_map
from armdyn.formulations.physics import complete
from armdyn.formulations.registry import AXES, PARAMETERS, Options, Physics, Run, Shapes
from armdyn.formulations.regressor.natural import combined, natural_regressor
from armdyn.graph.program import flatten, nest
from armdyn.parameters import minimal_parameters, realisation_on, realise


def derivative_ports(inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Shapes:
    """Names and shapes of the derivatives: output by output, `d{output}_d{input}`."""
    shapes = dict(inputs)
    for name in wrt:
        choose("input to differentiate in", name, shapes)
    return tuple((f"d{out}_d{name}", shape + shapes[name]) for out, shape in outputs for name in wrt)


def by_duals(function: Callable[..., Any], inputs: Shapes, outputs: Shapes, wrt: Sequence[str]) -> Callable[..., Any]:
    """The function that computes the derivatives by dual numbers, one nested list per port of `derivative_ports`."""
    names = [name for name, _ in inputs]

    def derivatives(*arguments: Any) -> Any:
        flat = [x for name in wrt for x in flatten(arguments[names.index(name)])]
        duals = iter(Dual.variables(flat))
        order = {name: [next(duals) for _ in flatten(arguments[names.index(name)])] for name in wrt}
        moved = [
            nest(order[name], shape) if name in wrt else x for (name, shape), x in zip(inputs, arguments, strict=True)
        ]
        results = function(*moved)
        results = (results,) if len(outputs) == 1 else results
        ports = []
        for result in results:
            slopes = [x.slopes if isinstance(x, Dual) else (0,) * len(flat) for x in flatten(result)]
            start = 0
            for size in (math.prod(dict(inputs)[name]) for name in wrt):
                ports.append([list(row[start : start + size]) for row in slopes])
                start += size
        return ports[0] if len(ports) == 1 else tuple(ports)

    return derivatives


def tangent_shapes(chain: Chain, inputs: Shapes) -> Shapes:
    """The input shapes in tangent space: six displacements of a floating base for the seven numbers of its pose."""
    return tuple((name, (chain.nv,) if name == "q" else shape) for name, shape in inputs)


def tangent_columns(q: Sequence[Any], values: Sequence[Any]) -> list[list[Any]]:
    """Rows of derivatives with respect to q as rows of derivatives in tangent space."""
    pose, n = tangent_map(list(q)), len(q)
    rows = [list(values[k : k + n]) for k in range(0, len(values), n)]
    six = range(6)
    return [[sum((x * p[j] for x, p in zip(row, pose, strict=False)), 0) for j in six] + row[7:] for row in rows]


NO_PARTS: Mapping[str, Run] = MappingProxyType({})


@dataclass(frozen=True)
class Assembly:
    """A function of scalars with the shapes of its inputs and outputs."""

    function: Callable[..., Any]
    inputs: Shapes
    outputs: Shapes


def assemble(
    chain: Chain,
    quantity: str,
    method: str,
    options: Options = Options(),
    parts: Mapping[str, Run] = NO_PARTS,
    physics: Physics | None = None,
    whole: Physics | None = None,
) -> Assembly:
    """The function `(q, ...) -> nested lists` for this arm, quantity and formulation.

    `parts` are the formulations of other quantities that this one uses (H for `composite`); `physics` replaces the
    physics of the registry; `whole` replaces both, and the treatment of mimic joints and a floating base.
    """
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    run = partial(entry.formulation(method, chain).run, **parts)
    _check(chain, quantity, options)
    must_have_inertia(chain, quantity, options)
    arm = reframed(chain, quantity, options)
    inputs = input_ports(chain, quantity, options)
    if options.base_acceleration and chain.floating:
        raise InputError(
            "a floating base has its own accelerations, the first six of qdd; base_acceleration is for others"
        )
    if options.base_acceleration and options.parameters == "runtime":
        raise InputError(
            "the minimal parameters are those that matter under this arm's gravity; with a base_acceleration of any "
            'direction others matter too: use parameters="baked"'
        )
    if options.parameters == "geometry" and quantity == "regressor":
        whole = _regressor(chain)

    def function(*arguments: Any) -> Any:
        given = list(arguments)
        real = arm if options.parameters == "baked" else at_run_time(arm, inputs[-1][0], given.pop())
        real = real.accelerated(given.pop()) if options.base_acceleration else real
        wrench = given.pop() if options.tool_wrench else None
        if whole is not None:
            return whole(run, real, given, options, wrench)
        result = complete(entry, physics or entry.physics, run, real, given, options, wrench)
        return [x for i, row in enumerate(result) for x in row[i:]] if options.packed else result

    assembly = Assembly(function, inputs, output_ports(chain, quantity, replace(options, derivatives=())))
    return _differentiated(chain, assembly, options.derivatives) if options.derivatives else assembly


def input_ports(chain: Chain, quantity: str, options: Options) -> Shapes:
    """The inputs with their shapes: those of the quantity, then those that the options add."""
    inputs = QUANTITIES[quantity].input_shapes(chain)
    if options.tool_wrench:
        inputs = (*inputs, ("wrench", (6 * max(1, len(options.frames)),)))
    if options.base_acceleration:
        inputs = (*inputs, ("base_acceleration", (3,)))
    if options.parameters == "runtime":
        inputs = (*inputs, ("parameters", (len(minimal_parameters(chain)),)))
    if options.parameters == "geometry":
        inputs = (*inputs, ("geometry", (len(geometry_constants(chain)),)))
    return inputs


def output_ports(chain: Chain, quantity: str, options: Options) -> Shapes:
    """The outputs with their shapes: of the quantity, or of its derivatives."""
    outputs = QUANTITIES[quantity].output_shapes(chain, len(options.frames))
    if options.packed:
        outputs = tuple((name, (n * (n + 1) // 2,)) for name, (n, _) in outputs)
    if not options.derivatives:
        return outputs
    return derivative_ports(tangent_shapes(chain, input_ports(chain, quantity, options)), outputs, options.derivatives)


def at_run_time(chain: Chain, port: str, values: Any) -> Chain:
    """The chain with the numbers of the last input: the minimal parameters or the geometry."""
    return realise(chain, values) if port == "parameters" else with_geometry(chain, values)


def _regressor(chain: Chain) -> Physics:
    """The regressor with the geometry as an input: its columns are the minimal parameters of the arm as given."""
    parameters, natural = minimal_parameters(chain), QUANTITIES["natural_regressor"]

    def whole(run: Run, arm: Chain, inputs: list[Any], options: Options, wrench: Any) -> Any:
        Y = complete(natural, natural.physics, natural_regressor, arm, inputs, options, wrench)
        return combined(Y, realisation_on(arm, parameters))

    return whole


def _differentiated(chain: Chain, plain: Assembly, wrt: tuple[str, ...]) -> Assembly:
    slopes = by_duals(plain.function, plain.inputs, plain.outputs, wrt)
    ports = derivative_ports(tangent_shapes(chain, plain.inputs), plain.outputs, wrt)

    def tangent(*arguments: Any) -> Any:
        found = slopes(*arguments)
        matrices = [found] if len(ports) == 1 else found
        q = arguments[[name for name, _ in plain.inputs].index("q")]
        found = tuple(
            tangent_columns(q, flatten(matrix)) if name.endswith("_dq") else matrix
            for (name, _), matrix in zip(ports, matrices, strict=True)
        )
        return found[0] if len(ports) == 1 else found

    return Assembly(tangent if chain.floating and "q" in wrt else slopes, plain.inputs, ports)


def reframed(chain: Chain, quantity: str, options: Options) -> Chain:
    """The arm with its frames placed for the shortest programs, unless the quantity needs them as given."""
    entry = QUANTITIES[quantity]
    at_tool = entry.at_tool or options.tool_wrench
    placed = options.frame or options.frames or (at_tool and chain.tool_link)
    as_given = entry.link_frames or placed or options.parameters != "baked"
    return (chain if as_given else canonical(chain)).rationals


def _check(chain: Chain, quantity: str, options: Options) -> None:
    """Raise an error for an option that does not apply to this quantity."""
    takes = QUANTITIES[quantity].takes
    runtime = choose("parameters", options.parameters, PARAMETERS) == "runtime"
    requests = {
        "friction": (options.friction, "friction"),
        "tool_wrench": (options.tool_wrench, "tool_wrench"),
        "frame": (options.frame is not None, "frame"),
        "parameters": (runtime, "run-time parameters"),
        "frames": (bool(options.frames) and not options.tool_wrench, "frames"),
        "base_acceleration": (options.base_acceleration, "base_acceleration"),
        "axes": (choose("axes", options.axes, AXES) != "base", "axes"),
        "rows": (bool(options.rows), "rows"),
        "damping": (options.damping != 0, "damping"),
        "packed": (options.packed, "packed result"),
    }
    for option, (wanted, called) in requests.items():
        if wanted and option not in takes:
            raise InputError(f"{quantity} takes no {called}; available for {', '.join(taking(option))}")
    if options.parameters == "geometry" and QUANTITIES[quantity].own_geometry:
        raise InputError(f"{quantity} depends on the arm's own geometry, which cannot be a run-time input of it")
    if options.frame and "tool_wrench" in takes and not options.tool_wrench:
        raise InputError(f"{quantity} takes a frame only with a tool_wrench, to say where it acts")


def must_have_inertia(chain: Chain, quantity: str, options: Options = Options()) -> None:
    """An error for the dynamics of an arm whose links have neither mass nor inertia: every result would be 0."""
    if QUANTITIES[quantity].massless or options.parameters == "runtime":
        return
    if all(isinstance(x, int | float | Fraction) and x == 0 for link in chain.links for x in link.natural):
        raise InputError(
            f"{quantity}: no link of this arm has a mass or an inertia (is <inertial> missing in its file?), so it has "
            "no dynamics; poses and Jacobians need none, with_links(...) gives others, and a payload is added with "
            "with_payload(mass, com, inertia)"
        )


__all__ = ["Assembly", "Options", "assemble", "reframed"]
