"""Forward dynamics: one file a published formulation; METHODS lists them all."""

from armdyn.formulations.forward_dynamics import composite
from armdyn.formulations.registry import Formulation

METHODS = (Formulation("composite", composite.forward_dynamics, "walker1982", "H, b, then U D Uᵀ"),)
