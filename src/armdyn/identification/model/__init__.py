"""The linear model τ = Y π of an arm with drives and friction, and its rows from a log."""

from armdyn.identification.model.model import Model

__all__ = ["Model"]
