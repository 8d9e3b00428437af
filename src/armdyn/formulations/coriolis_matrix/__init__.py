"""The Coriolis matrix: one file per published formulation; METHODS lists them all."""

from armdyn.formulations.coriolis_matrix import christoffel, denoc
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation("christoffel", christoffel.coriolis_matrix, "lin_1994", "Christoffel symbols from coupling vectors"),
    Formulation("denoc", denoc.coriolis_matrix, "saha_1999", "Nᵀ(M Ṅ + Ω M N)"),
)
