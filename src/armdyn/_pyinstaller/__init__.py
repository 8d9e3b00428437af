"""What PyInstaller must know of armdyn to freeze a program; it finds this by the entry point in pyproject.toml."""

from __future__ import annotations

import os


def get_hook_dirs() -> list[str]:
    """The folder with the hook."""
    return [os.path.dirname(os.path.abspath(__file__))]
