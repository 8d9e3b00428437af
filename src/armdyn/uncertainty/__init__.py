"""What if: guaranteed bounds over ranges of configurations."""

from armdyn.uncertainty.bounds import Bound, bound

__all__ = ["Bound", "bound"]
