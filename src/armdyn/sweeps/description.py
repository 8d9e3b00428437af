"""Fingerprints of studies: two studies with the same fingerprint compute the same numbers."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError


def digest(x: Any) -> str:
    """A SHA-256 digest, in hexadecimal, of everything that determines what `x` computes."""
    return hashlib.sha256(described(x).encode()).hexdigest()


def described(x: Any) -> str:
    """A text that is equal for equal data in every process; functions are represented by their source."""
    if x is None or isinstance(x, bool | int | float | complex | str | range):
        return repr(x)
    if isinstance(x, bytes):
        return hashlib.sha256(x).hexdigest()
    if isinstance(x, np.generic):
        return repr(x.item())
    if isinstance(x, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
        return f"array({x.dtype.str}, {x.shape}, {content})"
    if isinstance(x, tuple | list):
        return f"[{', '.join(map(described, x))}]"
    if isinstance(x, Mapping):
        return f"{{{', '.join(f'{described(k)}: {described(v)}' for k, v in x.items())}}}"
    if isinstance(x, Arm):
        return f"Arm({x.fingerprint})"
    if hasattr(x, "__describe__"):
        return f"{_name(type(x))}{described(x.__describe__())}"
    if is_dataclass(x) and not isinstance(x, type):
        return f"{_name(type(x))}{described({f.name: getattr(x, f.name) for f in fields(x)})}"
    return _function(x)


def _function(x: Any) -> str:
    if isinstance(x, partial):
        return f"partial({described(x.func)}, {described(x.args)}, {described(x.keywords)})"
    if isinstance(x, MethodType):
        return f"method({described(x.__func__)}, {described(x.__self__)})"
    if isinstance(x, FunctionType):
        bound = [cell.cell_contents for cell in x.__closure__ or ()]
        kept = (x.__defaults__, x.__kwdefaults__, bound)
        return f"{_name(x)}({_source(x)}, {described(kept)})"
    if isinstance(x, type | BuiltinFunctionType | np.ufunc):
        return _name(x)
    raise InputError(
        f"a study cannot be fingerprinted with {x!r} ({type(x).__name__}); use numbers, arrays, functions or frozen "
        "dataclasses of them"
    )


def _name(x: Any) -> str:
    return f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', getattr(x, '__name__', ''))}"


def _source(function: FunctionType) -> str:
    """A digest of the source, or of the bytecode if there is no source (interactive sessions)."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        return hashlib.sha256(_code(function.__code__).encode()).hexdigest()


def _code(code: CodeType) -> str:
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code!r} {constants} {code.co_names}"
