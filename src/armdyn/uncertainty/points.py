"""Points in the unit cube, addressed by index: bitwise the same in any order, in any chunks, on any machine."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, choose

Array = NDArray[np.float64]
KINDS = ("random", "sobol")
BLOCK = 4  # 64-bit numbers that Philox generates per counter value


def checked_seed(seed: object) -> int:
    """The seed as an int, or an error if it is not a whole number from 0 to 2⁶⁴ - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, got {seed!r}")
    return int(seed)


def unit_points(kind: str, seed: int, first: int, count: int, size: int) -> Array:
    """Points `first` to `first + count` of a sequence in (0, 1)^size, (count, size)."""
    choose("kind of points", kind, KINDS)
    if not count or not size:
        return np.zeros((count, size))
    return _random(seed, first, count, size) if kind == "random" else _sobol(seed, first, count, size)


def _random(seed: int, first: int, count: int, size: int) -> Array:
    """Philox is counter-based (Salmon et al. 2011): the counter of point i starts at i times the blocks per point."""
    blocks = -(-size // BLOCK)
    philox = np.random.Philox(key=seed, counter=first * blocks)
    raw = philox.random_raw(count * blocks * BLOCK).reshape(count, blocks * BLOCK)[:, :size]
    return np.asarray(((raw >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53)


def _sobol(seed: int, first: int, count: int, size: int) -> Array:
    """Sobol' points, scrambled with the seed (Owen 1998)."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(size, scramble=True, rng=np.random.default_rng(seed))
    if first:
        sequence.fast_forward(first)
    with warnings.catch_warnings():  # SciPy warns because a part of the sequence is not balanced
        warnings.simplefilter("ignore", UserWarning)
        points = sequence.random(count)
    return np.asarray(np.clip(points, 2.0**-54, 1 - 2.0**-53))
