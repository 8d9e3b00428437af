"""The inverse of the inertia matrix, and its factors U D Uᵀ; METHODS and FACTORS list the formulations."""

from armdyn.formulations.forward_dynamics import composite, denoc
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation(
        "denoc",
        denoc.inertia_inverse,
        "saha_1999",
        "closed form from articulated bodies",
        no_mimics=True,
        tree_inertia=True,
    ),
    Formulation(
        "composite",
        composite.inertia_inverse,
        "saha_1999",
        "H, then reverse Gaussian elimination",
        made_of=("inertia_matrix",),
    ),
)
ARTICULATED = (
    Formulation(
        "denoc",
        denoc.articulated_inertias,
        "saha_1999",
        "bodies whose outer joints are free to move",
        no_mimics=True,
        tree_inertia=True,
    ),
)
FACTORS = (
    Formulation(
        "denoc",
        denoc.inertia_factors,
        "saha_1999",
        "articulated-body inertias and couplings",
        no_mimics=True,
        tree_inertia=True,
    ),
    Formulation(
        "composite",
        composite.inertia_factors,
        "saha_1999",
        "H, then reverse Gaussian elimination",
        made_of=("inertia_matrix",),
    ),
)
