"""Logs: files as people have them, columns by name, evenly sampled pieces, filters."""

from armdyn.identification.log.log import Log, Piece

__all__ = ["Log", "Piece"]
