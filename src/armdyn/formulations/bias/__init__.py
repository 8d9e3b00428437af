"""The bias vector C q̇ + g: one file a published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.inverse_dynamics import newton_euler, second_moments
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation("newton_euler", newton_euler.bias, "luh1980", "inverse dynamics without acceleration"),
    Formulation("second_moments", second_moments.bias, "", "the same with second moments"),
    Formulation("reference", reference.bias, "", "exact derivatives of the energies"),
)
