"""Logs: file formats, columns by name, cleaning, resampling and filters."""

from armdyn.identification.log.log import Log, Piece

__all__ = ["Log", "Piece"]
