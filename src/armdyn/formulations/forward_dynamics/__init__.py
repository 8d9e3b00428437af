"""Forward dynamics: one file per published formulation; METHODS lists them all."""

from armdyn.formulations.forward_dynamics import articulated_body, composite, denoc
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation(
        "composite",
        composite.forward_dynamics,
        "walker_orin_1982",
        "H, b, then U D Uᵀ",
        made_of=("inertia_matrix", "bias"),
    ),
    Formulation("denoc", denoc.forward_dynamics, "saha_1999", "b, then U D Uᵀ by recursion, O(n)", no_mimics=True),
    Formulation(
        "articulated_body",
        articulated_body.forward_dynamics,
        "featherstone_1983",
        "articulated bodies, O(n)",
        no_mimics=True,
    ),
)
