"""Inverse dynamics: one file a published formulation; METHODS lists them all."""

from armdyn.formulations.inverse_dynamics import newton_euler, second_moments
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation("newton_euler", newton_euler.inverse_dynamics, "luh1980", "recursive, on natural parameters"),
    Formulation("second_moments", second_moments.inverse_dynamics, "", "recursive, on regrouped second moments"),
)
