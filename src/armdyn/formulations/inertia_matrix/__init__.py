"""The inertia matrix: one file a published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.registry import Formulation

METHODS = (Formulation("reference", reference.inertia_matrix, "", "the plain sum of JᵀMJ over links"),)
