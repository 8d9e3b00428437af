"""Inertia constants, minimal linear combinations, equivalence of parameter sets."""

from armdyn.parameters.constants import Constants, inertia_constants, inertia_constants_1994
from armdyn.parameters.elimination import Combinations, minimal_combinations
from armdyn.parameters.equivalence import (
    Equivalence,
    ParameterSet,
    equivalence,
    regrouped_parameters,
    with_columns,
)
from armdyn.parameters.extended import ExtendedParameters, extended_parameters
from armdyn.parameters.minimal import (
    MinimalParameters,
    gravity_parameters,
    inertia_matrix_parameters,
    minimal_parameters,
    realisation_on,
    union,
)
from armdyn.parameters.natural import realise

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
