"""Forward dynamics: one file per published formulation; METHODS lists them all."""

from armdyn.formulations.forward_dynamics import articulated_body, composite, denoc
from armdyn.formulations.registry import Formulation

SOLVERS = {"udu": "composite", "ldl": "composite_ldl", "gauss_jordan": "composite_gauss_jordan"}  # their methods

METHODS = (
    Formulation(
        "composite",
        composite.forward_dynamics,
        "walker_orin_1982",
        "H, b, then U D Uᵀ",
        made_of=("inertia_matrix", "bias"),
    ),
    Formulation(
        "composite_ldl",
        composite.by_ldl,
        "lin_1991",
        "H, b, then L D Lᵀ",
        made_of=("inertia_matrix", "bias"),
        reference_only=True,
    ),
    Formulation(
        "composite_gauss_jordan",
        composite.by_gauss_jordan,
        "provenzano",
        "H, b, then Gauss-Jordan elimination",
        made_of=("inertia_matrix", "bias"),
        reference_only=True,
    ),
    Formulation(
        "denoc",
        denoc.forward_dynamics,
        "saha_1999",
        "b, then U D Uᵀ by recursion, O(n)",
        no_mimics=True,
        tree_inertia=True,
    ),
    Formulation(
        "articulated_body",
        articulated_body.forward_dynamics,
        "featherstone_1983",
        "articulated bodies, O(n)",
        no_mimics=True,
        tree_inertia=True,
    ),
)
