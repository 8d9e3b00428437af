"""Pauses the cyclic garbage collector while a program is made.

Tracing and rewriting create hundreds of thousands of small objects, most of which live until the program is finished,
so that collections find nothing but take a quarter of the time (docs/adr/0011-registry-and-search.md). Reference
counting continues, and collection resumes when the last thread leaves.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_inside = 0
_was_enabled = False


@contextmanager
def paused_collector() -> Iterator[None]:
    """No cyclic garbage collection inside this block, which may be nested and entered by several threads."""
    global _inside, _was_enabled
    with _LOCK:
        if not _inside:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside = max(_inside - 1, 0)  # a forked child starts at 0
            if not _inside and _was_enabled:
                gc.enable()


def _after_fork() -> None:
    """Reset the state in a forked child, where no other thread exists to leave the block."""
    global _LOCK, _inside
    _LOCK = threading.Lock()
    if _inside and _was_enabled:
        gc.enable()
    _inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
