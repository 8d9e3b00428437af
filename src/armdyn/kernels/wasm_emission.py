"""An arm's quantities as a WebAssembly module, with an ES module and TypeScript types."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.chain import Chain
from armdyn.codegen import wasm
from armdyn.codegen.javascript import EsModule, es_module, types
from armdyn.codegen.text.names import identifier
from armdyn.codegen.wasm import can_be_stepped, with_steps
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import Program, trace
from armdyn.kernels.emission import DEFAULT, Frame, check_some, requests
from armdyn.kernels.kernel import auto
from armdyn.parameters import minimal_parameters
from armdyn.programs.program import program
from armdyn.programs.stepping import rates, stage_programs


def wasm_module(programs: dict[str, Program]) -> bytes:
    """A module of these programs; it includes `advance` if one of them computes accelerations."""
    stepped = _stepped(programs)
    if stepped is None:
        return wasm.module(programs)
    nq, nv = (len(port.nodes) for port in programs[stepped].inputs[:2])
    return wasm.module(*with_steps(programs, stepped, stage_programs("RK4", nq, nv), _rates(nq, nv)))


def wasm_files(
    name: str,
    chain: Chain,
    quantities: Sequence[str] = DEFAULT,
    parameters: str = "baked",
    friction: bool = False,
    source: str = "",
    version: str = "",
    links: tuple[Frame, ...] = (),
) -> dict[str, bytes]:
    """File name -> content: the module, the ES module, the types."""
    check_some(quantities)
    programs, summaries = {}, {}
    for key, (quantity, options) in requests(quantities, parameters, friction, links=links).items():
        programs[key] = program(chain, quantity, auto(chain, quantity, options), options)
        summaries[key] = QUANTITIES[quantity].summary
    comment = [f"{name}: dynamics in WebAssembly, written by armdyn {version}. SI units."]
    comment += [f"Arm: {' '.join(source.split())}"] if source else []
    pairs: tuple[tuple[str, float], ...] = ()
    if parameters == "runtime":
        minimal = minimal_parameters(chain)
        pairs = tuple(zip(minimal.names, map(float, minimal.values), strict=True))
    word = identifier(name)
    package = EsModule(word, "\n".join(comment), programs, summaries, _stepped(programs), pairs)
    return {
        f"{word}.wasm": wasm_module(programs),
        f"{word}.mjs": es_module(package).encode(),
        f"{word}.d.mts": types(package).encode(),
    }


def _stepped(programs: dict[str, Program]) -> str | None:
    """The first program that can be integrated, if any."""
    return next((key for key, program in programs.items() if can_be_stepped(program)), None)


def _rates(nq: int, nv: int) -> Program | None:
    """The rates of a floating base's coordinates; None where they are the velocities."""
    return None if nq == nv else trace("rates", rates, {"q": (nq,), "qd": (nv,)}, [("r", (nq,))])
