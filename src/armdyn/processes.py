"""What this process can start, and on how many cores."""

from __future__ import annotations

import os
import sys


def interpreter() -> bool:
    """Whether `sys.executable` is a Python interpreter: in a frozen or embedding program it is that program."""
    name = os.path.basename(sys.executable or "").lower()
    return not getattr(sys, "frozen", False) and name.startswith(("python", "pypy"))


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
