"""Distributions of uncertain parameters, with elementary functions that are bitwise reproducible on every machine.

Samples come from numbers in (0, 1) by inverse distribution functions. The logarithm and the exponential of different
mathematical libraries may differ in the last bit; here they use only additions, multiplications, divisions and square
roots, whose rounding IEEE 754 specifies exactly.

Points in the unit cube are addressed by index: bitwise the same in any order, in any chunks, on any machine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, choose, required

Array = NDArray[np.float64]
LOG_2 = (0.693147180369123816490, 1.90821492927058770002e-10)  # the first 33 bits, and the remainder

# Wichura 1988, algorithm AS 241 (PPND16): numerators and denominators for the centre, the tails and the far tails.
MIDDLE = (
    (3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
OUTER = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
FAR = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


@dataclass(frozen=True)
class Normal:
    """A normal distribution, truncated at the smallest possible value (0 for a mass, for example)."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.sd) and self.sd >= 0):
            raise InputError(f"Normal(mean, sd) takes finite numbers, sd at least 0; got {self.mean!r}, {self.sd!r}")


@dataclass(frozen=True)
class Uniform:
    """A uniform distribution from `low` to `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise InputError(f"Uniform(low, high) takes finite numbers, low first; got {self.low!r}, {self.high!r}")


Distribution = Normal | Uniform
Spec = Distribution | float  # a float is an exactly known value


class InverseDistributions:
    """Inverse distribution functions of several variables: maps points in the unit cube to values, per column.

    A normal distribution is truncated at the smallest possible value; a uniform one that reaches below it is an error.
    """

    def __init__(self, columns: Sequence[tuple[Distribution, float]]) -> None:
        self.normal = np.array([isinstance(d, Normal) for d, _ in columns], dtype=bool)
        pairs = [(d.mean, d.sd) if isinstance(d, Normal) else (d.low, d.high - d.low) for d, _ in columns]
        self.start, self.scale = np.array(pairs, dtype=float).reshape(-1, 2).T
        self.least = np.array([least for _, least in columns])
        self.cut = np.zeros(len(columns))
        for k, (d, least) in enumerate(columns):
            if isinstance(d, Uniform) and d.low < least:
                raise InputError(f"{d} reaches below {least:g}, which is impossible here")
            if isinstance(d, Normal) and d.sd > 0 and math.isfinite(least):
                self.cut[k] = _probability((least - d.mean) / d.sd)

    def __call__(self, u: Array) -> Array:
        """The values (k, d) of points (k, d)."""
        z = u.copy()
        some = self.normal
        z[:, some] = normal_quantile(self.cut[some] + (1.0 - self.cut[some]) * u[:, some])
        return np.asarray(np.maximum(self.start + self.scale * z, self.least))


def spread(given: Any, names: Sequence[str], what: str, usual: float) -> tuple[Spec, ...]:
    """One distribution or number per name, given once for all, as a sequence, or by name (`usual` for the others)."""
    if given is None:
        return (usual,) * len(names)
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise InputError(f"{what}: unknown {unknown[0]!r}; available: {', '.join(names)}")
        return tuple(_spec(given.get(name, usual), what) for name in names)
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        if len(given) != len(names):
            raise InputError(f"{what}: expected one value, or {len(names)} ({', '.join(names)}); got {len(given)}")
        return tuple(_spec(one, what) for one in given)
    return (_spec(given, what),) * len(names)


def _spec(given: Any, what: str) -> Spec:
    if isinstance(given, Normal | Uniform):
        return given
    if isinstance(given, int | float | np.number) and not isinstance(given, bool) and math.isfinite(given):
        return float(given)
    raise InputError(f"{what}: expected Normal(mean, sd), Uniform(low, high) or a number, got {given!r}")


def normal_quantile(u: Any) -> Array:
    """The standard normal quantile function for u in (0, 1): accurate to 16 digits, bitwise reproducible."""
    u = np.asarray(u, dtype=float)
    centred = u - 0.5
    near = np.abs(centred) <= 0.425
    out = centred * _ratio(MIDDLE, 0.180625 - centred * centred)
    tail = np.where(near, 0.5, np.minimum(u, 1.0 - u))
    r = np.sqrt(-logarithm(np.maximum(tail, np.finfo(float).tiny)))
    far = np.where(r <= 5.0, _ratio(OUTER, r - 1.6), _ratio(FAR, r - 5.0))
    return np.where(near, out, np.where(centred < 0, -far, far))


def _ratio(table: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    return np.asarray(_polynomial(table[0], x) / _polynomial(table[1], x))


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full(np.shape(x), coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def logarithm(x: Any) -> Array:
    """The natural logarithm of positive numbers: x = m 2^e, log m = 2 artanh((m - 1) / (m + 1))."""
    m, e = np.frexp(np.asarray(x, dtype=float))
    low = m < math.sqrt(0.5)
    m, e = np.where(low, 2 * m, m), np.where(low, e - 1, e)
    s = (m - 1.0) / (m + 1.0)
    series = _polynomial([1.0 / (2 * k + 1) for k in range(12)], s * s)
    return np.asarray(e * LOG_2[0] + (2.0 * s * series + e * LOG_2[1]))


def exponential(x: Any) -> Array:
    """The exponential function: e^x = 2^n e^r, |r| <= log 2 / 2, by a Taylor series."""
    x = np.clip(np.asarray(x, dtype=float), -700.0, 700.0)
    n = np.rint(x / (LOG_2[0] + LOG_2[1]))
    r = (x - n * LOG_2[0]) - n * LOG_2[1]
    return np.asarray(np.ldexp(_polynomial([1.0 / math.factorial(k) for k in range(15)], r), n.astype(int)))


def _probability(z: float) -> float:
    """The standard normal distribution function at z, by bisection of its inverse; 0 far below the mean."""
    if z < -8.0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 0 < middle < 1 and float(normal_quantile(middle)) < z else (low, middle)
    if high >= 1.0 - 1e-12:
        raise InputError(
            f"the smallest possible value is {z:.3g} standard deviations above the mean of a normal distribution"
        )
    return low


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
    required("scipy")
    from scipy.stats import qmc

    sequence = qmc.Sobol(size, scramble=True, rng=np.random.default_rng(seed))
    if first:
        sequence.fast_forward(first)
    with warnings.catch_warnings():  # SciPy warns because a part of the sequence is not balanced
        warnings.simplefilter("ignore", UserWarning)
        points = sequence.random(count)
    return np.asarray(np.clip(points, 2.0**-54, 1 - 2.0**-53))
