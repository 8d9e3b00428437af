"""The bias vector C q̇ + g: one file per published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.bias import lin_1991
from armdyn.formulations.inverse_dynamics import (
    balafoutis,
    gibbs_appell,
    khalil_kleinfinger,
    newton_euler,
    point_masses,
    second_moments,
)
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation("lin_1991", lin_1991.bias, "lin_1991", "composite bodies about the base origin", serial_only=True),
    Formulation("newton_euler", newton_euler.bias, "luh_1980", "inverse dynamics without acceleration"),
    Formulation("gibbs_appell", gibbs_appell.bias, "provenzano", "∂G/∂q̈ without acceleration", serial_only=True),
    Formulation("second_moments", second_moments.bias, "", "Newton-Euler with regrouped second moments"),
    Formulation("point_masses", point_masses.bias, "", "second moments and a point mass per joint"),
    Formulation(
        "khalil_kleinfinger",
        khalil_kleinfinger.bias,
        "khalil_kleinfinger_1987",
        "customised, about the origins of driving-axis frames",
        reference_only=True,
    ),
    Formulation(
        "balafoutis", balafoutis.bias, "balafoutis_1988", "augmented bodies, forces beyond m̂ s̈", reference_only=True
    ),
    Formulation("reference", reference.bias, "", "exact derivatives of the energies", reference_only=True),
)
