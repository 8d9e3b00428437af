"""Controllers in a deployed folder: their programs as functions, and a header of structs around them.

The code generator writes and tests functions of many arrays. For a control loop, the header wraps them with one struct
each for memory, gains, inputs and outputs. It is valid C99 and C++, and nothing in it allocates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armdyn.arm import Arm
from armdyn.codegen.text.c import Function, literal, out_name
from armdyn.codegen.text.names import identifier
from armdyn.control import Controller, Entry, controller
from armdyn.control.emission import functions
from armdyn.control.law import DT, NEXT, PAYLOAD, sized
from armdyn.control.program import start_program, step_program
from armdyn.errors import InputError
from armdyn.graph import Program

# The description of the header in the README.
STRUCTS = "the controllers, with structs for their memory, gains, inputs and outputs"


def chosen(
    arm: Arm, asked: Sequence[str | Controller], friction: bool, frame: str | None = None
) -> tuple[Controller, ...]:
    """The controllers given by name, for a frame, or as objects, whose gains become the defaults in the code."""
    found = [controller(arm, one, friction=friction, frame=frame) if isinstance(one, str) else one for one in asked]
    for one in found:
        if not isinstance(one, Controller):
            raise InputError(f"a controller must be a name or the result of armdyn.controller(...), got {one!r}")
        if one.arm != arm:
            raise InputError(f"{one!r} is for another arm than {arm.name}, the arm to be deployed")
    return tuple({one.law.name: one for one in found}.values())


def programs(controllers: Sequence[Controller]) -> dict[str, Function]:
    """Every function of the controllers, by name, with its test vectors."""
    return {name: function for one in controllers for name, function in functions(one).items()}


def header_name(arm: Arm) -> str:
    """The file name of the header."""
    return f"{identifier(arm.name)}_controllers.h"


def header(arm: Arm, controllers: Sequence[Controller], dtype: str) -> str:
    """The text of the header."""
    name = identifier(arm.name)
    guard = f"{name.upper()}_CONTROLLERS_H"
    lines = [
        "/*",
        f" * Controllers of {name}: structs around the functions of {name}.h. For each controller NAME:",
        " *",
    ]
    lines += [f" *   {name}_NAME_gains gains; {name}_NAME_defaults(&gains);"]
    lines += [f" *   {name}_NAME_memory memory; {name}_NAME_begin(&memory, &gains, &in);    once"]
    lines += [f" *   {name}_NAME_update(&memory, &gains, &in, dt, &out);    every control period", " */"]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", f'#include "{name}.h"', ""]
    for one in controllers:
        lines += _structs(name, one, dtype) + _functions(name, one, dtype)
    return "\n".join([*lines, f"#endif /* {guard} */", ""])


def _structs(name: str, one: Controller, dtype: str) -> list[str]:
    law, lines = one.law, [f"/* {one.law.name}: {one.law.summary}. {one.operations} per step. */"]
    parts = {"memory": law.memory, "gains": law.gains, "in": (*law.measured, *law.reference), "out": law.outputs}
    for part, entries in parts.items():
        if entries:
            fields = [
                f"    {name}_payload payload; /* mass, com, inertia */"
                if entry.of_payload
                else _field(entry, shape, dtype)
                for entry, (_, shape) in zip(entries, sized(entries, one.model.chain), strict=True)
                if not entry.of_payload or entry == PAYLOAD[0]
            ]
            lines += ["typedef struct {", *fields, f"}} {name}_{law.name}_{part};", ""]
    return lines


def _field(entry: Entry, shape: tuple[int, ...], dtype: str) -> str:
    size = int(np.prod(shape))
    rows = f", {shape[0]} rows of {shape[1]}" if len(shape) > 1 else ""
    return f"    {dtype} {entry.name}{f'[{size}]' if shape else ''}; /* {entry.words}{rows} */"


def _functions(name: str, one: Controller, dtype: str) -> list[str]:
    law, full = one.law, f"{name}_{one.law.name}"
    chain, friction = one.model.chain, one.friction
    lines = [f"static inline void {full}_defaults({full}_gains *gains)", "{"]
    lines += [
        f"    static const {full}_gains values = {{",
        *(f"        {text}," for text in _initializers(one, dtype)),
    ]
    lines += ["    };", "    *gains = values;"]
    lines += ["}", ""]
    memory = f"{full}_memory *memory, " if law.memory else ""
    if law.memory:
        lines += [f"static inline void {full}_begin({memory}const {full}_gains *gains, const {full}_in *in)", "{"]
        lines += [f"    {_call(full + '_start', start_program(law, chain, friction), one, 'memory->')}", "}", ""]
    lines += [f"static inline void {full}_update({memory}const {full}_gains *gains, const {full}_in *in, {dtype} dt,"]
    lines += [f"    {full}_out *out)", "{", *([f"    {full}_memory next;"] if law.memory else [])]
    lines += [f"    {_call(full, step_program(law, chain, friction), one, 'next.')}"]
    return [*lines, *(["    *memory = next;"] if law.memory else []), "}", ""]


def _initializers(one: Controller, dtype: str) -> list[str]:
    """The gains in the order of their struct; the payload's three are one."""
    texts = {entry.name: _initializer(one.gains[entry.name], dtype) for entry in one.law.gains}
    held = [texts.pop(entry.name) for entry in PAYLOAD if entry.name in texts]
    first = next((k for k, entry in enumerate(one.law.gains) if entry.of_payload), 0)
    found = list(texts.values())
    return [*found[:first], *([f"{{{', '.join(held)}}}"] if held else []), *found[first:]]


def member(entry: Entry) -> str:
    """The name of an entry in its struct: `payload.mass` of payload_mass."""
    return entry.name.replace("_", ".", 1) if entry.of_payload else entry.name


def _initializer(value: object, dtype: str) -> str:
    array = np.asarray(value, float)
    numbers = ", ".join(literal(float(x), dtype) for x in array.ravel())
    return f"{{{numbers}}}" if array.ndim else numbers


def _call(function: str, program: Program, one: Controller, memory: str) -> str:
    """The call of a function with the fields of the structs as arguments; the next memory is written to `memory`."""
    law = one.law
    place = {e.name: f"in->{e.name}" for e in (*law.measured, *law.reference)}
    place |= {e.name: f"gains->{member(e)}" for e in law.gains} | {e.name: f"memory->{e.name}" for e in law.memory}
    place[DT.name] = DT.name
    given = {e.name: f"out->{member(e)}" for e in law.outputs}
    given |= {e.name + suffix: f"{memory}{e.name}" for e in law.memory for suffix in ("", NEXT)}
    inputs = [("" if port.shape else "&") + place[port.name] for port in program.inputs]
    outputs = [("" if port.shape else "&") + given[port.name] for port in program.outputs]
    assert len({out_name(port, program) for port in program.outputs}) == len(outputs)
    return f"{function}({', '.join([*inputs, *outputs])});"
