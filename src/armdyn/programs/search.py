"""The search for the shortest program of a quantity on an arm.

Candidates are the formulations of a quantity, each with its variants. They are compared in stages, each more expensive
and more accurate than the one before, and only those close to the best go on to the next:

1. the operations counted by execution, before constant folding and common subexpression elimination,
2. the operations of the traced program, after both,
3. those after one round of rewriting, which makes most of the gain,
4. those of the program rewritten until nothing more is gained.

`shortest` runs stages 2 to 4 for one formulation and its variants; `auto` runs all of them for every formulation.
`Budget` defines how close is close enough, with the measurements behind it.

`published` counts operations as the papers do: a formulation's own steps, executed on counting scalars, stage by stage.
The conventions are those of the papers (docs/adr/0002-operations-and-folds.md). Rotors and friction are not counted:
they are added outside the formulations.

`paused_collector` pauses the cyclic garbage collector while a program is made: tracing and rewriting create hundreds of
thousands of small objects, most of which live until the program is finished, so that collections find nothing but take
a quarter of the time (docs/adr/0011-registry-and-search.md). Reference counting continues, and collection resumes when
the last thread leaves.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, wraps
from types import MappingProxyType
from typing import Any, TypeVar

from armdyn.algebra import Operations, Tally, counting
from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES
from armdyn.formulations.coordinates import Coordinates
from armdyn.formulations.physics import substituted
from armdyn.formulations.registry import Options, Run, Shapes
from armdyn.graph.program import ColumnProgram, Program, trace
from armdyn.graph.simplify import REWRITING, Rewriting, first_round, further_rounds, second_start
from armdyn.programs.assemble import assemble, must_have_inertia, reframed


@dataclass(frozen=True)
class Budget:
    """The thresholds of `armdyn.programs.search` and of derivative programs; those of rewriting are in `rewriting`.

    Measured on the catalogue's arms, general arms of 2 to 8 joints and 57 random arms of 3 to 12 joints with parallel
    and intersecting axes (docs/adr/0011-registry-and-search.md).
    """

    # Joints up to which every formulation is rewritten: for programs of a few dozen operations, tallies predict little.
    # Derivatives are tried both by recursion and by the chain rule.
    few_joints: int = 4
    # Joints above which programs may take seconds to trace.
    many_joints: int = 10
    # How many formulations with the smallest tallies are traced. The shortest program was among the first three for
    # constant parameters; with run-time parameters it was the fourth on RRPRR and PRRPRR (23 and 27 operations).
    formulations: int = 4
    # Ratio of lengths of short traced programs that rewriting does not make up for: 1.13 was seen. Above `short`
    # operations, and after a first round, `rewriting.near` is used instead.
    traced: float = 1.15
    short: int = 400
    # Operations added to every ratio: in programs of 100 operations, a difference of 8 was made up for after a first
    # round.
    slack: int = 8
    # Operations up to which tracing and rewriting all candidates takes less than a second. Above, the tallies decide
    # for an arm of many joints, and derivatives are not rewritten, which would gain less than one per cent.
    quick: int = 1500
    # Operations of the solution for the derivatives' columns above which they are not unrolled: for Talos (n = 38)
    # they are 89 000 of 109 000 and take 3 s to trace and 7 s to compile; for Baxter (n = 17) 5000
    # (docs/adr/0026-long-programs.md).
    written_out: int = 40_000
    rewriting: Rewriting = REWRITING


BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Published(Operations):
    """Operations as published, and their division into the paper's stages."""

    stages: Mapping[str, Operations] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def __reduce__(self) -> Any:  # a mapping proxy cannot be pickled
        return _published, (self.mul, self.add, self.div, self.trig, dict(self.stages))


def _published(mul: int, add: int, div: int, trig: int, stages: dict[str, Operations]) -> Published:
    return Published(mul, add, div, trig, MappingProxyType(stages))


def published(chain: Chain, quantity: str, method: str, **variant: Any) -> Published:
    """The operations that the formulation, or a `variant` of it, executes, counted as in the papers."""
    entry = QUANTITIES[choose("quantity", quantity, QUANTITIES)]
    run = partial(entry.formulation(method, chain).run, **variant)
    given = {name: _tallies(shape) for name, shape in entry.input_shapes(chain)}
    tree, inputs = substituted(Coordinates.of(chain), given)
    return _executed(run, tree, *inputs)


def tally(function: Callable[..., Any], inputs: Shapes) -> int:
    """The number of operations that a function of scalars executes; operations on constants do not count."""
    return _executed(function, *(_tallies(shape) for _, shape in inputs)).total


def _executed(function: Callable[..., Any], *arguments: Any) -> Published:
    with counting() as counter:
        function(*arguments)
    total = counter.operations()
    stages = {name: counter.operations(name) for name in counter.stages if name}
    return _published(total.mul, total.add, total.div, total.trig, stages)


def without_rotors(chain: Chain) -> Chain:
    """The same arm without rotor inertias, and those along tendons."""
    if any(tendon.armature for tendon in chain.tendons):
        chain = replace(chain, tendons=tuple(replace(tendon, armature=0) for tendon in chain.tendons))
    if all(joint.rotor_inertia == 0 for joint in chain.joints):
        return chain
    return replace(chain, joints=tuple(replace(joint, rotor_inertia=0) for joint in chain.joints))


def _tallies(shape: tuple[int, ...]) -> Any:
    """Generic run-time numbers."""
    return [Tally(math.sqrt(k + 2) / 4) for k in range(math.prod(shape))]  # no sum or difference of them vanishes


_LOCK = threading.Lock()
_inside = 0
_was_enabled = False


@contextmanager
def paused_collector() -> Iterator[None]:
    """No cyclic garbage collection inside this block, which may be nested and entered by several threads."""
    global _inside, _was_enabled
    with _LOCK:
        if not _inside:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside = max(_inside - 1, 0)  # a forked child starts at 0
            if not _inside and _was_enabled:
                gc.enable()


def _after_fork() -> None:
    """Reset the state in a forked child, where no other thread exists to leave the block."""
    global _LOCK, _inside
    _LOCK = threading.Lock()
    if _inside and _was_enabled:
        gc.enable()
    _inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


Made = TypeVar("Made")
REMEMBERED = 200_000  # nodes, of 0.3 kB each; a quantity of a seven-joint arm keeps some 5,000 of them per function


def remembered(function: Callable[..., Made]) -> Callable[..., Made]:
    """Keep the latest results, which are programs or tuples of them, with at most `REMEMBERED` nodes in their graphs.

    The result of the latest call is always kept. Beside `lru_cache`, whose entries may be of any size, this bounds the
    memory of a process that goes through many robots.
    """
    kept: dict[tuple[Any, ...], tuple[Made, int]] = {}  # the least recently used first

    @wraps(function)
    def called(*arguments: Any) -> Made:
        entry = kept.pop(arguments, None)
        if entry is not None:
            kept[arguments] = entry
            return entry[0]
        made = function(*arguments)
        kept[arguments] = made, _nodes(made)
        beyond = sum(size for _, size in tuple(kept.values())) - REMEMBERED
        for key in tuple(kept):
            if beyond <= 0 or key == arguments:
                break
            beyond -= kept.pop(key, (None, 0))[1]
        return made

    return called


def _nodes(made: Any) -> int:
    """How many nodes the graphs of programs hold, those included that no result needs."""
    if isinstance(made, tuple):
        return sum(map(_nodes, made))
    programs = (made.head, made.column) if isinstance(made, ColumnProgram) else (made,)
    graphs = {id(node.graph): node.graph for p in programs for port in p.outputs for node in port.nodes[:1]}
    return sum(map(len, graphs.values()))


Candidate = TypeVar("Candidate")
LOG = logging.getLogger("armdyn")


@lru_cache(maxsize=1024)
@paused_collector()
def auto(chain: Chain, quantity: str, options: Options = Options()) -> str:
    """The key of the formulation with the fewest compiled operations."""
    must_have_inertia(chain, quantity, options)  # or else no formulation would be found to apply
    methods = [m for m in QUANTITIES[quantity].methods if m.serves(chain)]
    if not methods:
        raise InputError(f"{quantity} has no formulation for a robot that branches")
    if options.derivatives and QUANTITIES[quantity].inverse_of:
        return methods[0].key  # they come from the other quantity, whatever the method
    if options.derivatives:
        for method in methods:
            if method.derivatives:
                return method.key  # a dedicated recursion beats the chain rule
        options = replace(options, derivatives=())  # a formulation that is cheap to compute is cheap to differentiate
    keys = [m.key for m in methods if not m.reference_only] or [methods[0].key]
    return keys[0] if len(keys) == 1 else _cheapest(chain, quantity, options, keys)


def _cheapest(chain: Chain, quantity: str, options: Options, keys: list[str]) -> str:
    """The stages of the search, formulation by formulation."""

    def tallied(chain: Chain) -> Callable[[str], int]:
        made = {key: assemble(chain, quantity, key, options) for key in keys}
        return lambda key: tally(made[key].function, made[key].inputs)

    if chain.n > BUDGET.many_joints and chain.serial and chain.plain:
        keys = _ranked(keys, tallied(_first_joints(chain, BUDGET.many_joints // 2)))[: BUDGET.formulations]
    if chain.n > BUDGET.few_joints:
        keys = _ranked(keys, tallied(chain))[: BUDGET.formulations]
        many = chain.n > BUDGET.many_joints
        if many and tallied(chain)(keys[0]) > BUDGET.quick:
            return keys[0]
        if not many:  # rewriting may halve the program of a long arm: its length as traced predicts little
            keys = _near(keys, lambda key: _total(_traced(chain, quantity, key, options)[0]), BUDGET.traced)
        keys = _near(keys, lambda key: _total(_rewritten(chain, quantity, key, options)[0]))
    ranked = _ranked(keys, lambda key: _cost(shortest(chain, quantity, key, options)))
    if LOG.isEnabledFor(logging.DEBUG):
        totals = ", ".join(f"{key} {_total(shortest(chain, quantity, key, options))}" for key in ranked)
        LOG.debug("%s of %d joints: operations of the shortest programs: %s", quantity, chain.n, totals)
    return ranked[0]


@remembered
def shortest(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The shortest program found for this formulation."""
    finished = [further_rounds(one) for one in _rewritten(chain, quantity, method, options)]
    return second_start(min(finished, key=_total))


@remembered
def _rewritten(chain: Chain, quantity: str, method: str, options: Options) -> tuple[Program, ...]:
    """The programs of the variants that are close to the shortest, after one round of rewriting, the shortest first."""
    near = _near(_distinct(_traced(chain, quantity, method, options)), _total, BUDGET.traced)
    return tuple(_near(_distinct([first_round(one) for one in near]), _total))


@remembered
def _traced(chain: Chain, quantity: str, method: str, options: Options) -> tuple[Program, ...]:
    """The traced programs of all variants, the shortest first."""
    formulation = QUANTITIES[quantity].formulation(method, chain)
    shared = _parts(chain, formulation.made_of, options)
    programs = []
    for variant in formulation.variants(reframed(chain, quantity, options)):
        made = assemble(chain, quantity, method, options, {**shared, **variant})
        programs.append(trace(f"{quantity}_{method}", made.function, dict(made.inputs), made.outputs))
    return tuple(sorted(programs, key=_total))


def traced(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The traced program, after constant folding and common subexpression elimination but before rewriting."""
    return _traced(chain, quantity, method, options)[0]


def _parts(chain: Chain, quantities: tuple[str, ...], options: Options) -> Mapping[str, Run]:
    """The cheapest formulations of the quantities that a formulation uses."""
    plain = Options(parameters=options.parameters)
    return {part: QUANTITIES[part].formulation(auto(chain, part, plain)).run for part in quantities}


def _ranked(candidates: Iterable[Candidate], count: Callable[[Candidate], Any]) -> list[Candidate]:
    """The candidates by their counts, the fewest operations first; equal counts keep their order.

    A formulation that rejects this arm is skipped, for instance one that needs centres of mass if a link has no mass.
    If all do, the first one's error is raised.
    """
    counted, refused = [], []
    for candidate in candidates:
        try:
            counted.append((count(candidate), candidate))
        except (InputError, ZeroDivisionError) as error:
            refused.append(error)
    if refused and not counted:
        raise refused[0]
    return [candidate for _, candidate in sorted(counted, key=lambda pair: pair[0])]


def _near(
    candidates: Iterable[Candidate], count: Callable[[Candidate], int], if_short: float = BUDGET.rewriting.near
) -> list[Candidate]:
    """The candidates close to the fewest operations, the fewest first; `if_short` is the ratio for short programs."""
    ranked = _ranked(candidates, count)
    counts = [count(one) for one in ranked]
    return [
        one
        for one, total in zip(ranked, counts, strict=True)
        if total <= (if_short if total <= BUDGET.short else BUDGET.rewriting.near) * counts[0] + BUDGET.slack
    ]


def _distinct(programs: Iterable[Program]) -> list[Program]:
    """The distinct programs: variants often lead to the same operations."""
    return list({program.structure: program for program in reversed(list(programs))}.values())[::-1]


def _cost(program: Program) -> tuple[int, int]:
    return program.operations.total, program.operations.mul


def _total(program: Program) -> int:
    return program.operations.total


def _first_joints(chain: Chain, n: int) -> Chain:
    alone = chain.uncoupled
    return replace(alone, joints=chain.joints[:n], links=chain.links[:n], parents=chain.parents[:n], tool_link=0)
