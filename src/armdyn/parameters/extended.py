"""Rigid-body parameters and those of the drives: rotor inertia, viscous and Coulomb friction, offset.

A drive term that is linearly dependent on rigid-body parameters is merged into them: the rotor of the first joint
rotates as its link does. Exact elimination on the energies finds these terms: a rotor adds ½ I q̇², an offset -τ q;
friction is odd in q̇ and always independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armdyn.algebra import Scalar
from armdyn.chain import Chain
from armdyn.errors import InputError, choose
from armdyn.parameters.elimination import exact_combinations
from armdyn.parameters.energy import Columns, Samples
from armdyn.parameters.minimal import MinimalParameters, exact_geometry, minimal_parameters

TERMS = ("rotor", "viscous", "coulomb", "offset")


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a joint's drive; joints are counted from 0."""

    kind: str
    joint: int

    @property
    def name(self) -> str:
        """``rotor_3``, counted from 1."""
        return f"{self.kind}_{self.joint + 1}"


@dataclass(frozen=True)
class ExtendedParameters:
    """The identifiable parameters of links and drives."""

    rigid: MinimalParameters
    alone: tuple[Term, ...]
    merged: dict[Term, tuple[tuple[str, Fraction], ...]]  # term -> (parameter it is merged into, factor)

    @property
    def names(self) -> tuple[str, ...]:
        """The rigid-body parameters, then the independent drive terms."""
        return (*self.rigid.names, *(term.name for term in self.alone))

    def __len__(self) -> int:
        return len(self.rigid) + len(self.alone)

    def columns(self, qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[list[Scalar]]:
        """N rows with one column per independent drive term, to append to the regressor's.

        `qd` and `qdd` are one scalar (or array over samples) per joint.
        """
        rows: list[list[Scalar]] = [[0] * len(self.alone) for _ in qd]
        for k, term in enumerate(self.alone):
            rows[term.joint][k] = _COLUMN[term.kind](qd[term.joint], qdd[term.joint])
        return rows


def _sign(x: Any) -> Any:
    return x.sign() if hasattr(x, "sign") else (x > 0) * 1 - (x < 0) * 1


_COLUMN = {
    "rotor": lambda qd, qdd: qdd,
    "viscous": lambda qd, qdd: qd,
    "coulomb": lambda qd, qdd: _sign(qd),
    "offset": lambda qd, qdd: 0 * qd + 1,
}


def extended_parameters(arm: Any, terms: Sequence[str] = TERMS) -> ExtendedParameters:
    """The minimal parameters of an arm (or a chain) with those of the drives; `terms` selects the drive terms."""
    chain = getattr(arm, "chain", arm)
    if not isinstance(chain, Chain):
        raise InputError(f"extended_parameters takes an Arm, got {arm!r:.80}; armdyn.load(...) returns one")
    for term in terms:
        choose("drive term", term, TERMS)
    rigid = minimal_parameters(chain)
    candidates = [Term(kind, i) for kind in ("offset", "rotor") if kind in terms for i in range(chain.n)]
    found = exact_combinations(_rows(rigid, candidates), len(rigid) + len(candidates))
    every = [*rigid.names, *(term.name for term in candidates)]
    merged = {
        term: tuple(
            (every[kept], line[column]) for kept, line in zip(found.kept, found.matrix, strict=True) if line[column]
        )
        for column, term in enumerate(candidates, len(rigid))
        if column not in found.kept
    }
    listed = (Term(kind, i) for i in range(chain.n) for kind in TERMS if kind in terms)
    return ExtendedParameters(rigid, tuple(term for term in listed if term not in merged), merged)


def _rows(rigid: MinimalParameters, candidates: list[Term]) -> Any:
    """Rows of kinetic and potential energies in turn, with a column per rigid-body parameter and candidate term."""
    samples = Samples(exact_geometry(rigid.chain))
    columns = Columns(MinimalParameters(samples.chain, rigid.kind, rigid.combinations).realisation)

    def row(k: int, prime: int) -> list[int]:
        sample, kinetic = samples.at(k // 2, prime), k % 2 == 0
        energy = columns.of(sample.kinetic if kinetic else sample.potential, prime)
        own, adds = ("rotor", sample.speeds) if kinetic else ("offset", sample.moves)
        return energy + [adds[term.joint] if term.kind == own else 0 for term in candidates]

    return row
