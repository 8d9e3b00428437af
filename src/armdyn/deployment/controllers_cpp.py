"""Controllers in a deployed C++ folder: one class per controller, with gains, memory, `begin` and `update`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armdyn.arm import Arm
from armdyn.codegen.text.c import literal
from armdyn.codegen.text.cpp import namespace
from armdyn.control import Controller, Entry
from armdyn.control.law import DT, NEXT, PAYLOAD, sized
from armdyn.control.program import start_program, step_program
from armdyn.deployment.controllers import member
from armdyn.graph import Program


def header_name(arm: Arm) -> str:
    """The file name of the header."""
    return f"{namespace(arm.name)}_controllers.hpp"


def header(arm: Arm, controllers: Sequence[Controller], dtype: str) -> str:
    """The text of the header; the classes are in the namespace `controllers` inside the arm's namespace."""
    name = namespace(arm.name)
    guard = f"{name.upper()}_CONTROLLERS_HPP"
    lines = [
        "/*",
        f" * Controllers of {name}: classes around the functions of {name}.hpp. Set the gains, call begin() once",
    ]
    lines += [" * and update() every control period. Nothing allocates or throws.", " */"]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", f'#include "{name}.hpp"', "", f"namespace {name} {{"]
    lines += ["namespace controllers {", ""]
    for one in controllers:
        lines += [f"/// {one.law.summary}: {one.operations} per step.", f"struct {one.law.name} {{"]
        lines += [*_structs(name, one, dtype), *_functions(name, one), "};", ""]
    return "\n".join([*lines, "} // namespace controllers", f"}} // namespace {name}", "", f"#endif // {guard}", ""])


def _structs(name: str, one: Controller, dtype: str) -> list[str]:
    law, lines = one.law, []
    parts = {"memory_type": law.memory, "gains_type": law.gains}
    parts |= {"in": (*law.measured, *law.reference), "out": law.outputs}
    for part, entries in parts.items():
        if entries:
            shapes = [shape for _, shape in sized(entries, one.model.chain)]
            fields = [
                _held(name, one, dtype, part == "gains_type") if entry.of_payload else _field(entry, shape, one, dtype)
                for entry, shape in zip(entries, shapes, strict=True)
                if not entry.of_payload or entry == PAYLOAD[0]
            ]
            lines += [f"    struct {part} {{", *fields, "    };", ""]
    return [*lines, "    gains_type gains{};", *(["    memory_type memory{};"] if law.memory else []), ""]


def _held(name: str, one: Controller, dtype: str, gains: bool) -> str:
    """The payload; among the gains with the controller's own values."""
    texts = [", ".join(literal(float(x), dtype) for x in np.ravel(one.gains[e.name])) for e in PAYLOAD if gains]
    start = "{}" if not texts else f"{{{texts[0]}, {{{{{texts[1]}}}}}, {{{{{texts[2]}}}}}}}"
    return f"        ::{name}::payload payload{start}; ///< mass, com, inertia"


def _field(entry: Entry, shape: tuple[int, ...], one: Controller, dtype: str) -> str:
    rows = f", {shape[0]} rows of {shape[1]}" if len(shape) > 1 else ""
    given = one.gains.get(entry.name)
    numbers = [] if given is None else [literal(float(x), dtype) for x in np.ravel(given)]
    if not shape:
        return f"        scalar {entry.name} = {numbers[0] if numbers else '0'}; ///< {entry.words}"
    start = f"{{{{{', '.join(numbers)}}}}}" if numbers else "{}"
    return f"        std::array<scalar, {int(np.prod(shape))}> {entry.name}{start}; ///< {entry.words}{rows}"


def _functions(name: str, one: Controller) -> list[str]:
    law, chain, lines = one.law, one.model.chain, []
    if law.memory:
        call = _call(f"{name}::{law.name}_start", start_program(law, chain, one.friction), one, "memory.")
        lines += ["    /// Sets the initial memory; call it once before the first update()."]
        lines += ["    void begin(const in& x) noexcept", "    {"]
        lines += ["        (void)x;", f"        {call}", "    }", ""]
    lines += ["    /// One control period of dt seconds.", "    out update(const in& x, scalar dt) noexcept", "    {"]
    lines += ["        out y{};", *(["        memory_type next{};"] if law.memory else [])]
    lines += [f"        {_call(f'{name}::{law.name}', step_program(law, chain, one.friction), one, 'next.')}"]
    return [*lines, *(["        memory = next;"] if law.memory else []), "        return y;", "    }"]


def _call(function: str, program: Program, one: Controller, memory: str) -> str:
    law = one.law
    place = {entry.name: f"x.{entry.name}" for entry in (*law.measured, *law.reference)}
    place |= {entry.name: f"gains.{member(entry)}" for entry in law.gains}
    place |= {entry.name: f"memory.{entry.name}" for entry in law.memory} | {DT.name: DT.name}
    given = {entry.name: f"y.{member(entry)}" for entry in law.outputs}
    given |= {entry.name + suffix: f"{memory}{entry.name}" for entry in law.memory for suffix in ("", NEXT)}
    arguments = [place[port.name] for port in program.inputs] + [given[port.name] for port in program.outputs]
    return f"::{function}({', '.join(arguments)});"
