"""A fingerprint of frozen data: the same in every process and for equal numbers of any type."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any


def fingerprint(*data: Any) -> str:
    """64 hexadecimal digits that are equal for equal data (0 and Fraction(0) are equal) and for no other."""
    return hashlib.sha256(_canonical(data).encode()).hexdigest()


def _canonical(x: Any) -> str:
    if x is None or isinstance(x, str):
        return repr(x)
    if isinstance(x, bytes):
        return hashlib.sha256(x).hexdigest()
    if isinstance(x, tuple):
        return f"({','.join(map(_canonical, x))})"
    if is_dataclass(x) and not isinstance(x, type):
        return f"{type(x).__name__}({','.join(_canonical(getattr(x, f.name)) for f in fields(x))})"
    return str(Fraction(x))
