"""Checks of batches of payloads: which are physically impossible, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.algebra import Sym3, Vec3, exact
from armdyn.chain import Link
from armdyn.chain.checks import ROUNDING, impossibility
from armdyn.errors import InputError

_FULL = [[0, 3, 4], [3, 1, 5], [4, 5, 2]]  # the index of each matrix entry among xx, yy, zz, xy, xz, yz


def refuse_impossible(*inputs: Any) -> None:
    """Raise an error for the first impossible payload: masses (...), coms (..., 3), inertias about them (..., 6).

    Arrays of wrong shapes are left to the kernel, which reports them.
    """
    try:
        mass, com, inertia = (np.asarray(x) for x in inputs[:3])
        batch = np.broadcast_shapes(mass.shape, com.shape[:-1], inertia.shape[:-1])
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy broadcasts
        return
    numbers = all(x.dtype.kind in "fiub" for x in (mass, com, inertia))
    if not numbers or com.shape[-1:] != (3,) or inertia.shape[-1:] != (6,):
        return
    finite = np.isfinite(mass) & np.isfinite(com).all(axis=-1) & np.isfinite(inertia).all(axis=-1)
    with np.errstate(all="ignore"):  # non-finite inputs are flagged above
        odd = ~finite | (mass < 0) | _impossible(inertia) | ((mass == 0) & inertia.any(axis=-1))
    if odd.any():
        row = np.unravel_index(int(np.argmax(odd)), batch)
        m, c, J = (np.broadcast_to(x, (*batch, *k))[row] for x, k in ((mass, ()), (com, (3,)), (inertia, (6,))))
        where = f" (row {', '.join(map(str, row))} of the batch)" if batch else ""
        raise InputError(f"this payload is not possible: {_reason(float(m), c.tolist(), J.tolist())}{where}")


def _impossible(inertia: np.ndarray) -> np.ndarray:
    """Which of the finite inertias (..., 6) are physically impossible, by the criteria of `checks.link_faults`."""
    odd = np.zeros(inertia.shape[:-1], dtype=bool)
    some = inertia.any(axis=-1) & np.isfinite(inertia).all(axis=-1)
    if some.any():
        small, middle, large = np.linalg.eigvalsh(np.asarray(inertia, dtype=float)[some][:, _FULL]).T
        slack = ROUNDING * np.maximum(np.abs(small), np.abs(large))
        odd[some] = (small < -slack) | (large > small + middle + slack)
    return odd


def _reason(mass: float, com: list[float], inertia: list[float]) -> str:
    if not np.isfinite([mass, *com, *inertia]).all():
        return f"mass {mass:g}, com {com} and inertia {inertia} must be finite"
    xx, yy, zz, xy, xz, yz = map(exact, inertia)
    body = Link.from_com(exact(mass), Vec3(*map(exact, com)), Sym3(xx, xy, yy, xz, yz, zz))
    return impossibility(body) or "its inertia is at the edge of what a body can have"
