"""Shared parts of all HTML pages: the writer, the scripts, and the arm's programs as WebAssembly."""

from armdyn.pages.live import robot
from armdyn.pages.writer import document

__all__ = ["document", "robot"]
