"""cached_property without a lock, on every Python.

Up to Python 3.11 `functools.cached_property` holds a lock while it computes, one for all objects of a class. A process
that forks while a thread is inside leaves that lock held in the child forever, and threads that compute the same
attribute of different objects wait for one another. Here two threads may compute an attribute twice; both get the same
value.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """An attribute that is computed on first access."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """The value, computed and kept in the instance's dictionary."""
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept[self.attrname] = self.func(instance)
            return kept[self.attrname]


__all__ = ["cached_property"]
