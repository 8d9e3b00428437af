"""The program of a quantity on an arm by a formulation, or of its derivatives: the shortest one found.

The exact partial derivatives of a quantity with respect to its inputs come from a formulation's own recursion if it has
one, otherwise from the chain rule on the graph. For a quantity that inverts another (forward dynamics), the implicit
function theorem is shorter: from the derivatives of τ = ID(q, q̇, q̈), ∂q̈/∂x = -H⁻¹ ∂τ/∂x for all inputs but the
torque itself, and ∂q̈/∂τ = H⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES, physics
from armdyn.formulations.elimination import Matrix, eliminate, inverted, solve
from armdyn.formulations.physics import gears_lose
from armdyn.formulations.registry import Options, Run
from armdyn.graph import passes
from armdyn.graph.derive import jacobian
from armdyn.graph.program import ColumnProgram, Program, StagedProgram, check, flatten, inline, nest, trace
from armdyn.graph.simplify import simplify
from armdyn.programs.assemble import assemble, at_run_time, derivative_ports, tangent_columns, tangent_shapes
from armdyn.programs.search import BUDGET, auto, paused_collector, remembered, shortest

FORWARD = "forward_dynamics"
FORWARD_RATES = f"{FORWARD}_derivatives"


def derivatives(chain: Chain, quantity: str, method: str, options: Options) -> Program:
    """The program of the partial derivatives with respect to the inputs that the options name."""
    plain, wrt = replace(options, derivatives=()), options.derivatives
    derivative_ports(assemble(chain, quantity, method, plain).inputs, (), wrt)  # raises an error for unknown inputs
    solved = _solved(chain, quantity, plain, wrt)
    return solved.straight_line() if solved else _partials(chain, quantity, method, plain, wrt)


def accelerations_and_derivatives(chain: Chain, options: Options) -> Program | None:
    """Forward dynamics and the derivatives that the options name in one program; None if there is no shared solution.

    The accelerations are on the way to their derivatives, and cost nothing beside them.
    """
    solved = _solved(chain, FORWARD, replace(options, derivatives=()), options.derivatives)
    return solved.straight_line(values=True) if solved else None


def derivatives_by_columns(chain: Chain, quantity: str, options: Options) -> ColumnProgram | None:
    """The column program of the partial derivatives, if it would be very long when unrolled for all columns."""
    solved = _solved(chain, quantity, replace(options, derivatives=()), options.derivatives)
    if solved is None:
        return None
    columns = sum(shape[1] for _, shape in solved.outputs)
    if 2 * chain.nv**2 * columns <= BUDGET.written_out:  # an upper bound on the operations of the solution
        return None
    made = solved.by_columns()
    one = made.specialised([False] * chain.nv).operations.total
    return made if one * columns > BUDGET.written_out else None


def derivatives_in_stages(chain: Chain, quantity: str, options: Options) -> StagedProgram | None:
    """The partial derivatives in stages, for processors with few registers; None if there is no shared solution."""
    solved = _solved(chain, quantity, replace(options, derivatives=()), options.derivatives)
    return solved.in_stages() if solved else None


def _solved(chain: Chain, quantity: str, options: Options, wrt: tuple[str, ...]) -> _Solved | None:
    """The parts of the derivatives through the quantity that this one inverts; None if it inverts none."""
    solved = QUANTITIES[quantity].inverse_of
    if not solved or gears_lose(chain, options):  # this needs τ linear in q̈
        return None
    others = tuple(name for name in wrt if name != "tau")
    key = auto(chain, solved, replace(options, derivatives=(*others, "qdd")))
    rates = _partials(chain, solved, key, options, (*others, "qdd"))
    return _Solved(chain, shortest(chain, solved, auto(chain, solved, options), options), rates, wrt)


def _partials(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...]) -> Program:
    """The derivatives by the formulation's own recursion if it has one for these inputs, else by the chain rule."""
    entry, candidates = QUANTITIES[quantity], []
    own = entry.formulation(method).derivatives
    if own is not None and not gears_lose(chain, options) and set(wrt) <= {name for name, _ in entry.inputs}:
        candidates.append(_by_recursion(chain, quantity, method, options, wrt, own))
    if not candidates or chain.n <= BUDGET.few_joints:
        candidates.append(_in_tangent_space(chain, jacobian(shortest(chain, quantity, method, options), wrt)))
    shorter = (simplify(one) if one.operations.total <= BUDGET.quick else one for one in candidates)
    return min(shorter, key=lambda one: one.operations.total)


def _by_recursion(
    chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...], own: Run
) -> Program:
    """A formulation's own derivatives, plus those of rotors, friction and a wrench by the chain rule."""

    def only_added(run: Run, arm: Chain, *rest: Any) -> Any:
        return QUANTITIES[quantity].physics(lambda arm, *_: [0] * arm.n, arm, *rest)

    whole = assemble(chain, quantity, method, options, physics=only_added)
    shapes = dict(whole.inputs)
    others = _in_tangent_space(chain, jacobian(trace(quantity, whole.function, shapes, whole.outputs), wrt))
    bare = assemble(
        chain, quantity, method, options, whole=lambda run, arm, inputs, *_: physics.derivatives(own, arm, inputs)
    )

    def function(*arguments: Any) -> Any:
        partials = dict(zip(shapes, bare.function(*arguments), strict=False))
        more = inline(others, *map(flatten, arguments))
        total = tuple(
            [a + b for a, b in zip(flatten(partials[name]), flat, strict=True)]
            for name, flat in zip(wrt, more, strict=True)
        )
        return total[0] if len(wrt) == 1 else total

    outputs = [(port.name, port.shape) for port in others.outputs]
    return trace(f"{quantity}_derivatives", function, shapes, outputs)


def _in_tangent_space(chain: Chain, partials: Program) -> Program:
    """Derivatives with six columns for a floating base's pose: displacements in its own axes, as in Pinocchio."""
    names = [port.name for port in partials.inputs]
    if not chain.floating or "q" not in names:
        return partials

    def function(*arguments: Any) -> Any:
        q = arguments[names.index("q")]
        found = tuple(
            tangent_columns(q, values) if port.name.endswith("_dq") else values
            for port, values in zip(partials.outputs, inline(partials, *map(flatten, arguments)), strict=True)
        )
        return found[0] if len(found) == 1 else found

    outputs = [
        (port.name, (*port.shape[:-1], chain.nv) if port.name.endswith("_dq") else port.shape)
        for port in partials.outputs
    ]
    return trace(partials.name, function, {port.name: port.shape for port in partials.inputs}, outputs)


@dataclass(frozen=True)
class _Solved:
    """The parts of the derivatives of forward dynamics: inverse dynamics and its derivatives, H the last of them."""

    chain: Chain
    inverse: Program
    rates: Program
    wrt: tuple[str, ...]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        return {"tau" if port.name == "qdd" else port.name: port.shape for port in self.inverse.inputs}

    @property
    def outputs(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes = dict(tangent_shapes(self.chain, tuple(self.inputs.items())))
        return [(f"dqdd_d{name}", (self.chain.nv, *shapes[name])) for name in self.wrt]

    def factored(self, *arguments: Any) -> tuple[Matrix, list[Any], list[Any]]:
        """(α, 1/D) of H = U D Uᵀ, and the accelerations due to τ."""
        n, given = self.chain.nv, dict(zip(self.inputs, arguments, strict=True))
        (bias,) = self._put_in(self.inverse, [0] * n, arguments)
        H = nest(self._put_in(self.rates, [0] * n, arguments)[-1], (n, n))
        last = next((name for name in ("parameters", "geometry") if name in given), "")
        arm = at_run_time(self.chain, last, given[last]) if last else self.chain
        alpha, reciprocals, _ = eliminate(arm, H)
        return alpha, reciprocals, solve(alpha, reciprocals, [t - b for t, b in zip(given["tau"], bias, strict=True)])

    def slopes(self, qdd: list[Any], *arguments: Any) -> dict[str, Matrix]:
        """The derivatives of inverse dynamics at these accelerations, by name."""
        found = zip(self.rates.outputs, self._put_in(self.rates, qdd, arguments)[:-1], strict=False)
        return {port.name.removeprefix("dtau_d"): nest(flat, port.shape) for port, flat in found}

    def _put_in(self, program: Program, qdd: list[Any], arguments: Sequence[Any]) -> list[list[Any]]:
        known = {**dict(zip(self.inputs, arguments, strict=True)), "qdd": qdd}
        return inline(program, *(known[port.name] for port in program.inputs))

    def straight_line(self, values: bool = False) -> Program:
        """The straight-line program for all columns; with `values`, its first result are the accelerations."""

        def function(*arguments: Any) -> Any:
            alpha, reciprocals, qdd = self.factored(*arguments)
            slopes, W = self.slopes(qdd, *arguments), inverted(alpha, reciprocals)

            def solved(columns: list[Any]) -> list[list[Any]]:
                """-H⁻¹ times these columns: by elimination if the zeros of a tree shorten that, otherwise with H⁻¹."""
                if not (self.chain.serial and self.chain.plain):
                    found = (solve(alpha, reciprocals, [-x for x in column]) for column in columns)
                    return [list(row) for row in zip(*found, strict=True)]
                return [[-sum((w * x for w, x in zip(row, one, strict=True)), 0) for one in columns] for row in W]

            partials = {"tau": W}
            for name, matrix in slopes.items():
                partials[name] = solved(list(zip(*matrix, strict=True)))
            result = (*([qdd] if values else ()), *(partials[name] for name in self.wrt))
            return result[0] if len(result) == 1 else result

        first = [("qdd", (self.chain.nv,))] if values else []
        return trace(FORWARD_RATES, function, self.inputs, [*first, *self.outputs])

    def by_columns(self) -> ColumnProgram:
        """The factors and the right-hand sides as one program, the solution of one column as another.

        The minus sign is in the reciprocals: shared are α and -1/D, and the right-hand sides of H⁻¹ are columns of -1.
        """

        def head(*arguments: Any) -> Any:
            alpha, reciprocals, qdd = self.factored(*arguments)
            rights = self._rights(qdd, *arguments)
            return self._shared(alpha, reciprocals), *rights

        outputs = [("shared", self._sharing), *self.outputs]
        return ColumnProgram(FORWARD_RATES, trace(FORWARD_RATES, head, self.inputs, outputs), self._column())

    def in_stages(self) -> StagedProgram:
        """The accelerations, from which the right-hand sides follow, then the factors and the solutions by column."""

        def accelerations(*arguments: Any) -> Any:
            return self.factored(*arguments)[2]

        def rights(*arguments: Any) -> Any:
            *others, qdd = arguments
            result = self._rights(qdd, *others)
            return result[0] if len(result) == 1 else result

        def shared(*arguments: Any) -> Any:
            return self._shared(*self.factored(*arguments)[:2])

        qdd = {"qdd": (self.chain.nv,)}
        return StagedProgram(
            trace("accelerations", accelerations, self.inputs, list(qdd.items())),
            trace("rights", rights, self.inputs | qdd, self.outputs),
            trace("shared", shared, self.inputs, [("shared", self._sharing)]),
            self._column(),
        )

    @property
    def _sharing(self) -> tuple[int, ...]:
        """The shape of what all columns share: the entries of α below the diagonal, then n reciprocals."""
        return (self.chain.nv * (self.chain.nv + 1) // 2,)

    @staticmethod
    def _shared(alpha: Matrix, reciprocals: list[Any]) -> list[Any]:
        return flatten(alpha) + [-x for x in reciprocals]

    def _rights(self, qdd: list[Any], *arguments: Any) -> tuple[Any, ...]:
        n = self.chain.nv
        minus_one = [[-1 if i == j else 0 for j in range(n)] for i in range(n)]
        known = {**self.slopes(qdd, *arguments), "tau": minus_one}
        return tuple(known[name] for name in self.wrt)

    def _column(self) -> Program:
        n = self.chain.nv

        def column(shared: list[Any], right: list[Any]) -> list[Any]:
            alpha = [shared[k * (k - 1) // 2 : k * (k + 1) // 2] for k in range(n)]
            return solve(alpha, shared[-n:], right)

        shapes = {"shared": self._sharing, "right": (n,)}
        return trace(f"{FORWARD_RATES}_column", column, shapes, [("column", (n,))])


@remembered
@paused_collector()
def compiled_program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program | ColumnProgram:
    """The program to compile: the same as `program`, or a column program if that would be very long."""
    by_columns = derivatives_by_columns(chain, quantity, options) if options.derivatives else None
    if by_columns is None:
        return program(chain, quantity, method, options)
    return by_columns


@remembered
@paused_collector()
def program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The graph of this arm's quantity, by this formulation."""
    make = derivatives if options.derivatives else shortest
    made = make(chain, quantity, method, options)
    return check(made) if passes.DEBUG else made
