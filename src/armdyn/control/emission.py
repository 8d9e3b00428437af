"""Control laws as functions for code generation: step and start, with test vectors of a few control periods."""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.codegen.text.c import Function
from armdyn.codegen.text.numpy import compile_numpy
from armdyn.control.controller import Controller
from armdyn.control.law import NEXT, Entry, sized
from armdyn.control.program import start_program, step_program
from armdyn.formulations.registry import Shapes
from armdyn.graph import Program

VECTORS = 5
PERIOD = 1e-3  # s, of the test vectors


def functions(controller: Controller) -> dict[str, Function]:
    """The functions of a controller by name: ``NAME`` is one step, ``NAME_start`` gives the initial memory."""
    law, chain = controller.law, controller.model.chain
    rng = np.random.default_rng(len(law.name))
    read = [_measured(sized((*law.measured, *law.reference), chain), rng) for _ in range(VECTORS + 1)]
    gains = {name: np.asarray(value, float) for name, value in controller.gains.items()}
    found: dict[str, Function] = {}
    memory: dict[str, Any] = {}
    step = step_program(law, chain, controller.friction)
    if law.memory:
        made = start_program(law, chain, controller.friction)
        given = [{**gains, **one} for one in read[:VECTORS]]
        found[f"{law.name}_start"] = _function(made, f"initial memory of {law.name}", controller, given)
        memory = dict(zip((e.name for e in law.memory), _outputs(made, given[0]), strict=True))
    given = []
    for one in read[1:]:
        given.append({**gains, **memory, **one, "dt": np.array(PERIOD)})
        memory = _memory(step, _outputs(step, given[-1]))
    comment = f"{law.summary}\nOne control period. Source: {law.source or 'armdyn'}"
    found[law.name] = _function(step, comment, controller, given)
    return found


def _measured(shapes: Shapes, rng: np.random.Generator) -> dict[str, Any]:
    """Random measurements and references; the rotation of a pose is made orthogonal."""
    found = {name: np.round(rng.uniform(-1.0, 1.0, shape), 3) for name, shape in shapes}
    if "pose_ref" in found:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = np.linalg.qr(found["pose_ref"][:3, :3])[0], found["pose_ref"][:3, 3]
        found["pose_ref"] = pose
    return found


def _outputs(program: Program, given: dict[str, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        found = compile_numpy(program)(*(np.asarray(given[port.name], float) for port in program.inputs))
    return tuple(np.asarray(one) for one in (found if isinstance(found, tuple) else (found,)))


def _memory(program: Program, outputs: tuple[Any, ...]) -> dict[str, Any]:
    pairs = zip(program.outputs, outputs, strict=True)
    return {port.name.removesuffix(NEXT): value for port, value in pairs if port.name.endswith(NEXT)}


def _function(program: Program, comment: str, controller: Controller, given: list[dict[str, Any]]) -> Function:
    law = controller.law
    entries: dict[str, Entry] = {e.name: e for e in (*law.reads, *law.outputs, *law.memory)}
    words = {entry.name: entry.words for entry in entries.values()}
    words |= {entry.name + NEXT: f"{entry.words}, for the next step" for entry in law.memory}
    rows = [_outputs(program, one) for one in given]
    return Function(
        program,
        comment,
        tuple(np.stack([np.asarray(one[port.name], float) for one in given]) for port in program.inputs),
        tuple(np.stack(column) for column in zip(*rows, strict=True)),
        {port.name: words[port.name] for port in (*program.inputs, *program.outputs)},
    )
