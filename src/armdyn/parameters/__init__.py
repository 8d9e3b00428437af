"""Inertia constants, minimal linear combinations, equivalence of parameter sets."""

from armdyn.parameters.elimination import Combinations, minimal_combinations
from armdyn.parameters.equivalence import (
    Equivalence,
    ExtendedParameters,
    ParameterSet,
    equivalence,
    extended_parameters,
    regrouped_parameters,
    with_columns,
)
from armdyn.parameters.minimal import (
    MinimalParameters,
    gravity_parameters,
    inertia_matrix_parameters,
    minimal_parameters,
    realisation_on,
    realise,
    union,
)
from armdyn.parameters.structure import Constants, inertia_constants, inertia_constants_1994

__all__ = [
    "Combinations",
    "Constants",
    "Equivalence",
    "ExtendedParameters",
    "MinimalParameters",
    "ParameterSet",
    "equivalence",
    "extended_parameters",
    "gravity_parameters",
    "inertia_constants",
    "inertia_constants_1994",
    "inertia_matrix_parameters",
    "minimal_combinations",
    "minimal_parameters",
    "realisation_on",
    "realise",
    "regrouped_parameters",
    "union",
    "with_columns",
]
