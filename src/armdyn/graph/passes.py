"""The passes of the compiler in their order, and what debug mode does at each of them.

A function over scalars becomes machine code by the passes of `PASSES`, from top to bottom; a search over formulations
and variants (`programs.search`) runs the first two on several candidates. With the environment variable ARMDYN_DEBUG
set, every pass checks what it was given and what it made, and says on standard error what that was, with its counts.
A check that fails is an error that names the pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

DEBUG = bool(os.environ.get("ARMDYN_DEBUG"))
PASSES = {
    "trace": "a function over nodes becomes a program; every operation is folded and shared as it is made",
    "simplify": "common factors are shared and sums expanded, until no operation is saved",
    "contract": "products and sums become fused multiply-adds",
    "split": "long code in plain LLVM IR becomes several functions, with slots for values that later ones need",
    "schedule": "AVX2 instructions get an order that hides latencies and keeps few values live",
    "allocate": "values of AVX2 instructions get registers, and slots where there are too few",
    "emit": "everything becomes the text of one LLVM module",
    "assemble": "the module becomes machine code, by LLVM",
}
Given = ParamSpec("Given")
Made = TypeVar("Made")


class MalformedError(ValueError):
    """Something that a pass made violates a rule that later passes rely on: a bug in armdyn."""


def compiler_pass(
    name: str, counts: Callable[[Any], str], check: Callable[..., object] | None = None, before: Any = None
) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Make a function one of the `PASSES`; its first argument is what the pass gets.

    In debug mode `before(given)` and `check(made, *arguments)` raise a `ValueError` for what is malformed, and
    `counts(made)` is said.
    """
    if name not in PASSES:
        raise ValueError(f"unknown pass {name!r}; available: {', '.join(PASSES)}")

    def decorated(function: Callable[Given, Made]) -> Callable[Given, Made]:
        @wraps(function)
        def run(*given: Given.args, **options: Given.kwargs) -> Made:
            if not DEBUG:
                return function(*given, **options)
            if before is not None:
                _checked(f"before {name}", before, given[0])
            made = function(*given, **options)
            if check is not None:
                _checked(f"after {name}", check, made, *given)
            print(f"armdyn {name}: {counts(made)}", file=sys.stderr)
            return made

        return run

    return decorated


def _checked(where: str, check: Callable[..., object], *values: Any) -> None:
    """Run a check; its error says where the program was malformed."""
    try:
        check(*values)
    except ValueError as error:
        raise MalformedError(f"{where}: {error}") from error
