"""Automatic choice of the integration method and the step."""

from __future__ import annotations

import numpy as np

from armdyn.programs.stepping import SCHEMES
from armdyn.simulation import stability
from armdyn.simulation.request import Request
from armdyn.simulation.sticking import Steps

LONGEST = 1e-3  # s: the automatic step unless stability requires a shorter one
SHORTEST = 1e-7  # s: the shortest automatic step
RESERVE = 2.0  # how much stiffer than at the start an arm may become


def chosen_method(stepper: Steps, asked: Request) -> str:
    """RK4, or ARK4 if controller gains or viscous friction are too stiff for RK4 with this step."""
    postures = asked.layout.split(asked.state)[0]
    if stepper.silent or not len(postures) or not stability.may_be_stiff(stepper, postures, RESERVE * asked.step):
        return "RK4"
    stiff = any(stability.growth(SCHEMES["RK4"], linear, RESERVE * asked.step) for linear in _starts(stepper, asked))
    return "ARK4" if stiff else "RK4"


def first_step(stepper: Steps, asked: Request) -> float:
    """The longest automatic step, or a shorter one if the method needs it at the initial states."""
    if stepper.silent:
        return asked.step
    return stability.stable_step(SCHEMES[stepper.taken], _starts(stepper, asked), asked.step)


def _starts(stepper: Steps, asked: Request) -> list[stability.Linear]:
    """The linearised motion about the initial states of some lanes."""
    if not len(asked.state):
        return []
    lanes = np.unique(np.linspace(0, len(asked.state) - 1, stability.LANES).astype(int))
    t = float(asked.times[0])
    found = [
        stability.linearised(stepper.some(np.array([lane])), t, asked.state[lane], released=True) for lane in lanes
    ]
    return [linear for linear in found if linear is not None]
