"""What every HTML page is made with: one writer, one set of scripts, and the arm's programs in WebAssembly."""

from armdyn.pages.live import robot
from armdyn.pages.writer import document

__all__ = ["document", "robot"]
