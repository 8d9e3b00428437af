"""Trajectories that make an arm's parameters visible."""

from armdyn.identification.excitation.design import excite
from armdyn.identification.excitation.result import Excitation

__all__ = ["Excitation", "excite"]
