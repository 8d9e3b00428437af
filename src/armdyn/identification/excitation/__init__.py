"""Trajectories that make an arm's parameters visible."""

from armdyn.identification.excitation.design import Excitation, excite

__all__ = ["Excitation", "excite"]
