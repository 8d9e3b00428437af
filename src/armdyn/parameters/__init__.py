"""Inertia constants, minimal linear combinations, equivalence of parameter sets."""

from armdyn.parameters.constants import Constants, inertia_constants, inertia_constants_1994

__all__ = ["Constants", "inertia_constants", "inertia_constants_1994"]
