"""The inverted inertia matrix and its factors U D Uᵀ: one file a formulation; METHODS and FACTORS list them."""

from armdyn.formulations.forward_dynamics import composite
from armdyn.formulations.registry import Formulation

METHODS = (Formulation("composite", composite.inertia_inverse, "saha1999", "U⁻ᵀ D⁻¹ U⁻¹ by elimination"),)
FACTORS = (Formulation("composite", composite.inertia_factors, "saha1999", "reverse Gaussian elimination"),)
