"""What if: guaranteed bounds over ranges of configurations, and of rounding errors."""

from armdyn.uncertainty.bounds import Bound, bound
from armdyn.uncertainty.rounding_error import RoundingError, rounding_error

__all__ = ["Bound", "RoundingError", "bound", "rounding_error"]
