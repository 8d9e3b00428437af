"""The bias vector C q̇ + g: one file a published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.registry import Formulation

METHODS = (Formulation("reference", reference.bias, "", "exact derivatives of the energies"),)
