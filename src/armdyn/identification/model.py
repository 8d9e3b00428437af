"""The model τ = Y(q, q̇, q̈) π: the rigid body with the arm's minimal parameters, and terms for drives and friction.

Every term is linear in its parameter. The natural parameters of the model are the ten of each link, then one per extra
term and joint; `natural` maps them to the identifiable ones, so that π = natural @ (links, extras). A rotor inertia or
an offset with exactly the same effect as a rigid-body parameter is merged into it.

The rows of τ = Y π from the motions of a log: both sides pass the same filter and are decimated.

Pseudo-inertia: a link's ten parameters as a symmetric 4 x 4 matrix, positive definite for a real body.

P = [[Σ, h], [hᵀ, m]] with Σ = ½ tr(I) 1 - I (Wensing, Kim & Slotine 2018, "Linear matrix inequalities for physically
consistent inertial parameter identification"). P ≻ 0 holds exactly when the mass and the principal moments are
positive and the moments satisfy the triangle inequalities, as those of a body with positive density do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.chain import Chain, Joint
from armdyn.chain.joint import DRIVE, POSITIVE
from armdyn.errors import InputError, choose
from armdyn.identification.processing import UNCUT, Motion, Processing, decimated, matrix_of, smooth_sign
from armdyn.parameters import ExtendedParameters, extended_parameters
from armdyn.values import cached_property

Array = NDArray[np.float64]
# The extra terms of each friction model.
FRICTION: dict[str, tuple[str, ...]] = {
    "none": (),
    "viscous": ("viscous",),
    "coulomb": ("viscous", "coulomb"),
    "asymmetric": ("viscous", "asymmetry", "coulomb"),
    "stribeck": ("viscous", "coulomb", "stribeck"),
    "asymmetric_stribeck": ("viscous", "asymmetry", "coulomb", "stribeck"),
}
STRIBECK_EXPONENT = (
    4  # of `chain.JointForces`: 3.06 % instead of 3.58 % on the UR10's log, 5.36 and 5.31 % on the TX40's
)
RIPPLES = (2, 3, 4)  # per turn: once per turn is what gravity does, faster ones average out


@dataclass(frozen=True)
class Term:
    """An extra term: the symbol and meaning of its parameter, the field it is in, and its column of the regressor.

    `field` is one of `Joint` or of its `JointForces`; `column` takes the model and a motion (N, n) and gives (N, n).
    """

    symbol: str
    words: str
    field: str
    column: Callable[[Model, Array, Array, Array], Any]
    ripple: tuple[int, str] | None = None  # of one wave of `ripples`: how often per turn, "sine" or "cosine"

    @property
    def positive(self) -> bool:
        """Whether the parameter cannot be negative."""
        return self.field in (*DRIVE, *POSITIVE)

    def value(self, joint: Joint) -> float:
        """The parameter that a joint has."""
        if self.ripple is not None:
            per_turn, wave = self.ripple
            return float(sum(getattr(r, wave) for r in joint.forces.ripples if r.per_turn == per_turn))
        return float(getattr(joint if self.field in DRIVE else joint.forces, self.field))


def _ripple(per_turn: int, wave: str) -> Term:
    function, field = {"sin": (np.sin, "sine"), "cos": (np.cos, "cosine")}[wave]

    def column(model: Model, q: Array, qd: Array, qdd: Array) -> Any:
        return function(per_turn * q)

    words = f"ripple of the torque, {per_turn} per turn"
    return Term(f"{wave}{per_turn}q", words, "ripples", column, (per_turn, field))


TERMS: dict[str, Term] = {
    "rotor": Term("Ia", "rotor inertia, reflected to the joint", "rotor_inertia", lambda m, q, qd, qdd: qdd),
    "viscous": Term("fv", "viscous friction", "viscous", lambda m, q, qd, qdd: qd),
    "asymmetry": Term(
        "fva", "viscous friction forwards less backwards, half", "asymmetry", lambda m, q, qd, qdd: np.abs(qd)
    ),
    "coulomb": Term("fc", "Coulomb friction", "coulomb", lambda m, q, qd, qdd: smooth_sign(qd, m.width)),
    "stribeck": Term(
        "fs", "static friction, Coulomb's being that of higher speeds", "static",
        lambda m, q, qd, qdd: smooth_sign(qd, m.width) / (1 + (qd / m.stribeck) ** STRIBECK_EXPONENT),
    ),
    "load": Term(
        "fl", "friction over the joint's load", "load_friction",
        lambda m, q, qd, qdd: smooth_sign(qd, m.width) * m.load_torque(q, qd, qdd),
    ),
    "offset": Term("off", "constant offset", "offset", lambda m, q, qd, qdd: np.ones_like(qd)),
    "spring": Term("k", "stiffness (cable, spring)", "stiffness", lambda m, q, qd, qdd: q),
    **{f"{wave}{k}": _ripple(k, wave) for k in RIPPLES for wave in ("sin", "cos")},
}  # fmt: skip
UNITS = {"Ia": "kg m²", "fv": "N m s/rad", "fva": "N m s/rad", "fl": "1", "k": "N m/rad"}  # the others are torques
SLIDING_UNITS = {"Ia": "kg", "fv": "N s/m", "fva": "N s/m", "fl": "1", "k": "N/m"}
COUPLED = ("rotor", "viscous", "coulomb")
DRIFTING = ("viscous", "coulomb", "offset")  # what may differ from log to log: friction falls as a drive warms up


@dataclass(frozen=True)
class Parameter:
    """What an extra parameter of a model is: the coefficient of a term at a joint, or of a motor that turns several.

    With `log` it is the difference of a further log from the first. Joints, motors and logs are counted from 0.
    """

    term: str
    joint: int | None
    motor: int | None = None
    log: int | None = None

    @property
    def name(self) -> str:
        """Joints, motors and logs in names are counted from 1: fc2 of joint 2, fc2_3 in log 3, fcm2 of motor 2."""
        where = f"m{self.motor + 1}" if self.joint is None and self.motor is not None else f"{(self.joint or 0) + 1}"
        return f"{TERMS[self.term].symbol}{where}" + ("" if self.log is None else f"_{self.log + 1}")

    @property
    def own(self) -> bool:
        """Whether it is a joint's own and that of all logs, which is what an arm has."""
        return self.joint is not None and self.log is None

    @property
    def positive(self) -> bool:
        """Whether it cannot be negative."""
        return self.own and TERMS[self.term].positive


@dataclass(frozen=True, eq=False)
class Model:
    """The model of an arm for identification; `terms` are the extra terms, each with the joints (from 0) that have it.

    `width` is that of the smooth sign and `stribeck` the Stribeck velocity, per joint. `load` (the links, 10 n) and
    `load_rotors` (n) are the parameters that give the load torque for load-dependent friction. Friction is defined as
    in `chain.Joint`: at a joint with static friction, the Stribeck column is subtracted from the Coulomb column.
    """

    arm: Arm
    terms: dict[str, tuple[int, ...]]
    width: Array
    stribeck: Array
    load: Array
    load_rotors: Array
    coupling: Array | None = None  # rows of the transmission with more than one joint, scaled to 1 on the diagonal
    logs: int = 1  # with several, each further log has its own friction, as a difference to the first

    @classmethod
    def of(
        cls,
        arm: Arm,
        friction: str = "coulomb",
        *,
        rotor: bool = True,
        offset: bool = True,
        spring: bool = False,
        transmission: Any = None,
    ) -> Model:
        """The model of an arm with this friction model, with or without rotors, offsets and springs at the joints."""
        arm.must_suit("identification")
        wanted = {"rotor": rotor, **dict.fromkeys(FRICTION[choose("friction", friction, FRICTION)], True)}
        wanted |= {"offset": offset, "spring": spring}
        terms = {term: tuple(range(arm.n)) for term, there in wanted.items() if there}
        coupling = None if transmission is None else coupled_rows(transmission, arm.n)
        return cls(
            arm, terms, np.zeros(arm.n), np.ones(arm.n), np.zeros(10 * arm.chain.bodies), np.zeros(arm.n), coupling
        )

    def adding(self, term: str, joint: int) -> Model:
        """The model with one more term at one joint (from 0)."""
        return replace(self, terms={**self.terms, term: tuple(sorted({*self.terms.get(term, ()), joint}))})

    def tuned(self, qd: Array, width: float | Sequence[float] | None) -> Model:
        """The model with the width of the smooth sign; by default 2 % of each joint's largest velocity."""
        top = np.abs(qd).max(axis=0)
        chosen = 0.02 * top if width is None else np.broadcast_to(np.asarray(width, dtype=float), top.shape)
        return replace(self, width=np.array(chosen), stribeck=np.where(top > 0, 0.1 * top, 1.0))

    @property
    def n(self) -> int:
        """The number of joints."""
        return self.arm.n

    @property
    def links(self) -> int:
        """The number of natural parameters of the links, ten per body; a tree with mimic joints has more than n."""
        return 10 * self.arm.chain.bodies

    @cached_property
    def extra_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the extra terms, merged or not: the joints' own, those of motors, differences of logs."""
        drifting = [term for term in DRIFTING if term in self.terms]
        return (
            *(Parameter(term, j) for term, joints in self.terms.items() for j in joints),
            *(Parameter(term, None, motor=k) for term in COUPLED if term in self.terms for k in self.shared_motors),
            *(Parameter(t, j, log=log) for log in range(1, self.logs) for t in drifting for j in self.terms[t]),
        )

    @cached_property
    def places(self) -> dict[Parameter, int]:
        """The place of each extra parameter among them."""
        return {parameter: k for k, parameter in enumerate(self.extra_parameters)}

    @property
    def extra_names(self) -> tuple[str, ...]:
        """The names of the extra parameters."""
        return tuple(parameter.name for parameter in self.extra_parameters)

    def kind(self, name: str, k: int) -> tuple[str, str]:
        """What the parameter of this name and index is, and its unit; a sum is of the kind of its first element."""
        if k < self.rigid:
            first = name.lstrip("-0123456789. ")[:1]
            return {"k": ("first moments", "kg m"), "m": ("masses", "kg")}.get(first, ("second moments", "kg m²"))
        own = self.standing_alone[k - self.rigid]
        where = own.motor if own.joint is None else own.joint
        revolute = self.arm.joints[where or 0].revolute
        term = TERMS[own.term]
        return term.words, (UNITS if revolute else SLIDING_UNITS).get(term.symbol, "N m" if revolute else "N")

    @property
    def extra_positive(self) -> NDArray[np.bool_]:
        """Which extra parameters cannot be negative."""
        return np.array([parameter.positive for parameter in self.extra_parameters], dtype=bool)

    @property
    def shared_motors(self) -> list[int]:
        """The motors (from 0) that turn several joints."""
        return [] if self.coupling is None else [k for k, row in enumerate(self.coupling) if np.count_nonzero(row) > 1]

    def extras(self, q: Array, qd: Array, qdd: Array, log: int = 0) -> Array:
        """The columns of the extra terms, merged or not, along a motion of one of the logs: (N, n, extras)."""
        out = np.zeros((*q.shape, len(self.extra_parameters)))
        columns = {term: np.asarray(TERMS[term].column(self, q, qd, qdd)) for term in self.terms}
        static = self.terms.get("stribeck", ())
        for k, parameter in enumerate(self.extra_parameters):
            term, j = parameter.term, parameter.joint
            if j is None:
                out[:, :, k] = self._drive(parameter, qd, qdd)
            elif parameter.log in (None, log):
                out[:, j, k] = columns[term][:, j]
                if term == "coulomb" and j in static:
                    out[:, j, k] -= columns["stribeck"][:, j]
        return out

    def load_torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The magnitude of the load torque of each joint."""
        minimal = np.asarray(self.arm.minimal_parameters.array) @ self.load
        return np.abs(np.asarray(self.arm.regressor(q, qd, qdd)) @ minimal + self.load_rotors * qdd)

    def loaded(self, natural: Array) -> Model:
        """The model whose loads are those of natural parameters (10 n + extras)."""
        return replace(self, load=natural[: self.links], load_rotors=self.of_joints("rotor", natural))

    def of_joints(self, term: str, natural: Array) -> Array:
        """The parameters of a term of all joints (n,), 0 where a joint has none."""
        values = natural[self.links :]
        at = [self.places.get(Parameter(term, j)) for j in range(self.n)]
        return np.array([0.0 if k is None else float(values[k]) for k in at])

    def _drive(self, parameter: Parameter, qd: Array, qdd: Array) -> Array:
        """A coupling term of a motor that drives several joints: its inertia or friction between them."""
        assert self.coupling is not None
        assert parameter.motor is not None
        row = self.coupling[parameter.motor]
        if parameter.term == "coulomb":
            return np.asarray(smooth_sign(qd @ row, float(self.width[parameter.motor]))[:, None] * row)
        mixed = np.outer(row, row) - np.diag(row**2)  # the diagonal is the joints' own rotor and friction
        return np.asarray((qdd if parameter.term == "rotor" else qd) @ mixed)

    @cached_property
    def _merged(self) -> tuple[NDArray[np.bool_], Array]:
        """(which extras stand alone, loads of all on (rigid, extras)): a merged one loads on what takes it up."""
        found = _extended(self.arm.chain, tuple(t for t in self.terms if t in ("rotor", "offset")))
        rigid = {name: k for k, name in enumerate(found.rigid.names)}
        at = {f"{p.term}_{p.joint + 1}": k for p, k in self.places.items() if p.own and p.joint is not None}
        alone = np.ones(len(self.extra_parameters), dtype=bool)
        load = np.vstack([np.zeros((len(rigid), len(alone))), np.eye(len(alone))])
        for term, parts in found.merged.items():
            alone[at[term.name]] = False
            load[:, at[term.name]] = 0.0
            for name, factor in parts:
                load[rigid[name] if name in rigid else len(rigid) + at[name], at[term.name]] = float(factor)
        return self._drives_merged(alone, load)

    def _drives_merged(self, alone: NDArray[np.bool_], load: Array) -> tuple[NDArray[np.bool_], Array]:
        """The same with coupled rotors that act like other columns (parallel axes) merged, found on random motions."""
        rotors = [k for p, k in self.places.items() if p.term == "rotor" and p.motor is not None]
        if not rotors:
            return alone, load
        rng = np.random.default_rng(0)
        q, qd, qdd = rng.uniform(-2, 2, (3, 40 + 4 * self.n, self.n))
        extra = self.extras(q, qd, qdd).reshape(len(q) * self.n, -1)
        rigid = np.asarray(self.arm.regressor(q, qd, qdd)).reshape(len(extra), -1)
        for k in rotors:
            others = alone.copy()
            others[rotors] = False
            columns = np.hstack([rigid, extra[:, others]])
            fit = np.linalg.lstsq(columns, extra[:, k], rcond=None)[0]
            if np.linalg.norm(columns @ fit - extra[:, k]) < 1e-9 * np.linalg.norm(extra[:, k]):
                alone[k] = False
                load[:, k] = 0.0
                load[np.r_[np.ones(rigid.shape[1], dtype=bool), others], k] = np.where(np.abs(fit) > 1e-9, fit, 0.0)
        return alone, load

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Which of the extra columns are not merged into another."""
        return self._merged[0]

    @property
    def standing_alone(self) -> list[Parameter]:
        """The extra parameters that are not merged into another, in the regressor's order."""
        return [own for own, alone in zip(self.extra_parameters, self._merged[0], strict=True) if alone]

    @cached_property
    def joints_of(self) -> tuple[int | None, ...]:
        """The joint (from 0) of each identifiable parameter; None: of a motor that turns several.

        A rigid body's parameter belongs to the first link of its combination, which is the link it is named after.
        """
        chain = self.arm.chain
        leaders = [chain.leader(joint)[0] if joint.mimic else i for i, joint in enumerate(chain.joints)]
        coordinate = {i: j for j, i in enumerate(chain.independent)}
        first = [int(np.flatnonzero(row)[0]) // 10 for row in np.asarray(self.arm.minimal_parameters.array)]
        return (*(coordinate[leaders[k]] for k in first), *(own.joint for own in self.standing_alone))

    @cached_property
    def natural(self) -> Array:
        """Identifiable parameters from natural ones: (p, 10 n + extras)."""
        alone, load = self._merged
        rigid = np.asarray(self.arm.minimal_parameters.array)
        keep = np.r_[np.ones(len(rigid), dtype=bool), alone]
        links = np.vstack([rigid, np.zeros((len(alone), rigid.shape[1]))])
        return np.hstack([links, load])[keep]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The identifiable parameters: the arm's minimal ones, then the extras that stand alone."""
        alone, load = self._merged
        added = self.extra_names
        every = [*self.arm.minimal_parameters.names, *added]
        for k in np.flatnonzero(~alone):
            for row in np.flatnonzero(load[:, k]):
                every[row] += f" + {added[k]}"
        keep = [*([True] * self.rigid), *alone]
        return tuple(name for name, kept in zip(every, keep, strict=True) if kept)

    @property
    def rigid(self) -> int:
        """How many of the parameters are the rigid body's."""
        return len(self.arm.minimal_parameters.names)

    def regressor(self, q: Array, qd: Array, qdd: Array, log: int = 0) -> Array:
        """Y of a motion of one of the logs: (N, n, p), columns as in `names`."""
        Y = np.asarray(self.arm.regressor(q, qd, qdd))
        return np.concatenate([Y, self.extras(q, qd, qdd, log)[:, :, self.alone]], axis=2)

    def prior(self, arm: Arm) -> Array:
        """The natural parameters of an arm, its drives and other joint forces: (10 n + extras,)."""
        links = np.array([[float(x) for x in link.natural] for link in arm.links]).ravel()
        extra = [TERMS[p.term].value(arm.joints[p.joint]) if p.own and p.joint is not None else 0.0
                 for p in self.extra_parameters]  # fmt: skip
        return np.concatenate([links, extra])


@lru_cache(maxsize=32)
def _extended(chain: Chain, terms: tuple[str, ...]) -> ExtendedParameters:
    return extended_parameters(chain, terms)


def coupled_rows(transmission: Any, n: int) -> Array | None:
    """The transmission scaled to 1 on the diagonal where a motor turns several joints; None where none does."""
    K = matrix_of(transmission, n)
    if np.count_nonzero(K - np.diag(np.diag(K))) == 0:
        return None
    if (np.diag(K) == 0).any():
        raise InputError("the transmission's diagonal must not be zero: number the motors as their joints")
    return K / np.diag(K)[:, None]


PERIODIC = 0.97  # autocorrelation of positions and velocities above which a motion is periodic
MAX_CLIPPED = 0.02  # largest contribution of saturated torques to a filtered row that is kept
MIN_OVERLAP = 0.3  # smallest fraction of the log that must overlap with itself at a lag


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the model: Y (N, n, p), tau (N, n), times, numbers of the pieces, and which are fitted (N, n)."""

    Y: Array
    tau: Array
    t: Array
    piece: NDArray[np.int64]
    kept: NDArray[np.bool_]
    repeat: int = 0  # period of the motion in rows; 0 if it is not periodic

    def __len__(self) -> int:
        return len(self.t)

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """The chosen samples."""
        return Rows(self.Y[chosen], self.tau[chosen], self.t[chosen], self.piece[chosen], self.kept[chosen])

    def segments(self, count: int) -> NDArray[np.int64]:
        """The cross-validation segment of each sample: `count` consecutive segments of equal length.

        A periodic motion is divided within its period, and the repetitions of a segment have the same number: a
        segment predicted from its own repetition would make any model look good.
        """
        length = self.repeat or len(self)
        return np.minimum(np.arange(len(self)) % length * count // length, count - 1)


def filtered(x: Array, part: Motion, how: Processing) -> Array:
    """A signal of a piece after the parallel filter and decimation, without the filter transients at its ends."""
    rate = 1 / part.period
    late = how.late(rate)
    if how.parallel is not None and how.parallel < 0.45 * rate:
        columns = x.reshape(len(x), int(np.prod(x.shape[1:])))  # none where the model has no extra parameters
        kept = decimated(columns, rate, how.parallel, late)
        x = kept.reshape(len(kept), *x.shape[1:])
    edge = how.edge(part.period)
    return x[edge : len(x) - edge] if len(x) > UNCUT * edge else x


def rows(model: Model, parts: list[Motion], how: Processing) -> Rows:
    """The rows of the model over all pieces; regressor and torques pass the same filter."""
    Y = [np.concatenate([_rigid_rows(model.arm, p, how), _extra_rows(model, p, how)], axis=2) for p in parts]
    tau = [filtered(p.tau, p, how) for p in parts]
    t = [_times(p, how) for p in parts]
    piece = [np.full(len(own), number) for number, own in enumerate(t)]
    kept = [kept_rows(p, how) for p in parts]
    states = [np.hstack([filtered(p.q, p, how), filtered(p.qd, p, how)]) for p in parts]
    repeat = repeats_after(np.concatenate(states))
    joined = [np.concatenate(every) for every in (Y, tau, t)]
    return Rows(joined[0], joined[1], joined[2], np.concatenate(piece), np.concatenate(kept), repeat)


@lru_cache(maxsize=8)
def _rigid_rows(arm: Arm, part: Motion, how: Processing) -> Array:
    """The filtered regressor of the rigid body; kept, because models with other terms share it."""
    return filtered(np.asarray(arm.regressor(part.q, part.qd, part.qdd)), part, how)


def _extra_rows(model: Model, part: Motion, how: Processing) -> Array:
    """The filtered columns of the extra terms that stand alone."""
    columns = model.extras(part.q, part.qd, part.qdd, part.log)
    return filtered(columns[:, :, model.alone], part, how)


def kept_rows(part: Motion, how: Processing) -> NDArray[np.bool_]:
    """Which rows are fitted: those outside the dead zone and without saturated torques."""
    if part.counted is not None:
        return part.counted
    moving = np.abs(filtered(part.qd, part, how)) >= how.dead_zone
    if part.clipped is None:
        return np.asarray(moving)
    return np.asarray(moving & (np.abs(filtered(part.clipped.astype(float), part, how)) < MAX_CLIPPED))


def repeats_after(states: Array) -> int:
    """Period of a motion in rows, from the autocorrelation of positions and velocities; 0 if it is not periodic.

    A lag is considered if at least MIN_OVERLAP of the motion overlaps with itself; consecutive runs count as periods.
    """
    centred = states - states.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    S = centred[:, size > 1e-3 * size.max()] / size[size > 1e-3 * size.max()]
    rows = len(S)
    spectrum = np.fft.rfft(S, 2 * rows, axis=0)
    product = np.fft.irfft((np.abs(spectrum) ** 2).sum(axis=1))[:rows]
    energy = np.cumsum((S**2).sum(axis=1))
    before, after = energy[::-1], energy[-1] - np.concatenate([[0.0], energy[:-1]])
    correlation = product / np.maximum(np.sqrt(before * after), 1e-300)
    lags = np.arange(rows)
    gone = np.flatnonzero(correlation < 0.5)
    possible = (
        (lags >= (gone[0] if len(gone) else rows)) & (lags <= (1 - MIN_OVERLAP) * rows) & (correlation > PERIODIC)
    )
    if not possible.any():
        return 0
    first = int(np.argmax(possible))
    near = slice(first, first + max(1, first // 10))
    return first + int(np.argmax(np.where(possible, correlation, 0.0)[near]))


def _times(part: Motion, how: Processing) -> Array:
    late = how.late(1 / part.period)
    own = part.t[::late] if how.parallel is not None and how.parallel < 0.45 / part.period else part.t
    edge = how.edge(part.period)
    return own[edge : len(own) - edge] if len(own) > UNCUT * edge else own


# Entries of the upper triangle, column by column.
PAIRS = [(i, j) for j in range(4) for i in range(j + 1)]


def pseudo_inertia(natural: Array) -> Array:
    """The pseudo-inertia matrices (..., 4, 4) of inertial parameters (..., 10)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(natural, dtype=float), -1, 0)
    half = (xx + yy + zz) / 2
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def natural_of(P: Array) -> Array:
    """The inertial parameters (..., 10) of pseudo-inertia matrices (..., 4, 4): the inverse of `pseudo_inertia`."""
    P = np.asarray(P, dtype=float)
    s = P[..., 0, 0] + P[..., 1, 1] + P[..., 2, 2]
    parts = [P[..., 3, 3], P[..., 0, 3], P[..., 1, 3], P[..., 2, 3], s - P[..., 0, 0], -P[..., 0, 1]]
    parts += [s - P[..., 1, 1], -P[..., 0, 2], -P[..., 1, 2], s - P[..., 2, 2]]
    return np.stack(parts, axis=-1)


def reference_bodies(natural: Array) -> tuple[Array, list[int]]:
    """Physically consistent bodies near the given ones, (n, 4, 4), and the links (from 0) that were inconsistent.

    An inconsistent or flat body keeps its mass and centre of mass and is given the inertia of a small sphere; a link
    without mass is given a tenth of the mean mass. The bodies serve only as the reference of the regularization.
    """
    links = np.asarray(natural, dtype=float).reshape(-1, 10)
    masses = links[:, 0]
    usual = float(masses[masses > 0].mean()) if (masses > 0).any() else 1.0
    out, bad = [], []
    for k, link in enumerate(links):
        P = pseudo_inertia(link)
        scale = np.trace(P[:3, :3]) / 3 if link[0] > 0 else 0.0
        if link[0] <= 0 or np.linalg.eigvalsh(_unit(P, scale))[0] < 1e-6:
            bad.append(k)
            mass = link[0] if link[0] > 0 else 0.1 * usual
            centre = link[1:4] / link[0] if link[0] > 0 else np.zeros(3)
            radius = 0.05
            P = np.zeros((4, 4))
            P[:3, :3] = mass * (radius**2 * np.eye(3) + np.outer(centre, centre))
            P[:3, 3] = P[3, :3] = mass * centre
            P[3, 3] = mass
        out.append(P)
    return np.array(out), bad


def _unit(P: Array, scale: float) -> Array:
    """P normalized by its own mass and size, so that its eigenvalues can be compared with a threshold."""
    if not scale > 0 or not P[3, 3] > 0:
        return -np.eye(4)
    d = np.array([*([1 / np.sqrt(scale)] * 3), 1 / np.sqrt(P[3, 3])])
    return np.asarray(d[:, None] * P * d)
