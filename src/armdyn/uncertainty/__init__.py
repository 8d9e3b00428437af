"""Uncertainty: guaranteed bounds over ranges, bounds of rounding errors, and arms with uncertain parameters."""

from armdyn.uncertainty.bounds import Bound, RoundingError, bound, rounding_error
from armdyn.uncertainty.distributions import Normal, Uniform
from armdyn.uncertainty.statistics import Outcome, Probability, SobolIndices, Worst, probability
from armdyn.uncertainty.uncertain import Samples, Uncertain, Variable

__all__ = [
    "Bound",
    "Normal",
    "Outcome",
    "Probability",
    "RoundingError",
    "Samples",
    "SobolIndices",
    "Uncertain",
    "Uniform",
    "Variable",
    "Worst",
    "bound",
    "probability",
    "rounding_error",
]
