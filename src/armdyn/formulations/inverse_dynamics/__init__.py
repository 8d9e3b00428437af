"""Inverse dynamics: one file per published formulation; METHODS lists them all."""

from armdyn.formulations.bias import lin_1991
from armdyn.formulations.inverse_dynamics import (
    balafoutis,
    derivatives,
    gibbs_appell,
    khalil_kleinfinger,
    newton_euler,
    newton_euler_mlc,
    point_masses,
    second_moments,
)
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation("newton_euler", newton_euler.inverse_dynamics, "luh_1980", "recursive, with natural parameters"),
    Formulation(
        "newton_euler_mlc", newton_euler_mlc.inverse_dynamics, "lin_1995", "recursive, with minimal combinations"
    ),
    Formulation(
        "second_moments",
        second_moments.inverse_dynamics,
        "",
        "recursive, with regrouped second moments",
        derivatives=derivatives.derivatives,
    ),
    Formulation(
        "point_masses",
        point_masses.inverse_dynamics,
        "",
        "recursive, with second moments and a point mass per joint",
        derivatives=derivatives.derivatives,
    ),
    Formulation("lin_1991", lin_1991.inverse_dynamics, "lin_1991", "H q̈ + b from composite bodies", serial_only=True),
    Formulation("gibbs_appell", gibbs_appell.inverse_dynamics, "provenzano", "∂G/∂q̈", serial_only=True),
    Formulation(
        "khalil_kleinfinger",
        khalil_kleinfinger.inverse_dynamics,
        "khalil_kleinfinger_1987",
        "customised, about the origins of driving-axis frames",
        reference_only=True,
    ),
    Formulation(
        "balafoutis",
        balafoutis.inverse_dynamics,
        "balafoutis_1988",
        "augmented bodies, forces beyond m̂ s̈",
        reference_only=True,
    ),
)
