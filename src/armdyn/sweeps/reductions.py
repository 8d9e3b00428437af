"""Mergeable reductions: workers reduce their chunks, and the partial results are merged in the order of the chunks.

A reduction has three steps: `partial` reduces the values of a chunk, `merged` combines two partial results, `finished`
returns labelled variables. A NaN is a sample without a value: it is left out and counted in `missing`.

The results of a study's function are arrays with named axes: sample, time, joint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError, choose
from armdyn.uncertainty.statistics import probability

SAMPLE = "sample"
Variables = dict[str, "LabelledArray"]


@dataclass(frozen=True, eq=False)
class LabelledArray:
    """Values with the names of their axes."""

    dims: tuple[str, ...]
    values: np.ndarray
    constant: bool = False  # known beforehand, like the sample numbers

    @property
    def sampled(self) -> bool:
        """Whether there is one value per sample; others are coordinates."""
        return self.dims[:1] == (SAMPLE,) and not self.constant


def labelled(results: Any, count: int, arm: Arm) -> Variables:
    """The checked variables of a chunk: the first axis of each is "sample", or none is."""
    if not isinstance(results, Mapping) or not results:
        raise InputError(f"a study's function must return a dict of arrays by name, got {type(results).__name__}")
    return {str(name): _variable(str(name), x, count, arm) for name, x in results.items()}


def _variable(name: str, given: Any, count: int, arm: Arm) -> LabelledArray:
    dims, values = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    array = np.asarray(values)
    if array.dtype == object:
        raise InputError(f"{name}: expected an array of numbers, got objects")
    if dims is None:
        dims = [SAMPLE, *(f"{name}_{k}" for k in range(1, array.ndim))]
        if array.ndim > 1 and array.shape[-1] == arm.n:
            dims[-1] = "joint"
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    if len(dims) != array.ndim or (dims[:1] == (SAMPLE,) and array.shape[0] != count) or SAMPLE in dims[1:]:
        raise InputError(
            f"{name}: expected ({count}, ...) values, one per sample, and a name for each axis; got shape "
            f"{array.shape} with axes {dims}"
        )
    return LabelledArray(dims, array)


def coordinates(arm: Arm) -> Variables:
    """The names of the joints as a coordinate."""
    return {"joint": LabelledArray(("joint",), np.array(arm.joint_names, dtype=np.str_))}


def dataset(variables: Variables, coords: Variables, attributes: Mapping[str, Any]) -> Any:
    """An xarray Dataset, with the coordinates whose axes a variable uses."""
    xarray = needed("xarray")
    used = {dim for v in variables.values() for dim in v.dims}
    return xarray.Dataset(
        {name: (v.dims, v.values) for name, v in variables.items()},
        coords={name: (v.dims, v.values) for name, v in coords.items() if set(v.dims) <= used},
        attrs=dict(attributes),
    )


def require(where: str | None, cluster: bool = False) -> None:
    """Raise an error, before any work is done, if a package is missing that a sweep into `where` will need."""
    from importlib.util import find_spec

    wanted = ["pyarrow"] if (where or "").endswith(".parquet") else ["xarray", *(["zarr"] if where else [])]
    wanted += (["fsspec"] if "://" in (where or "") else []) + (["distributed"] if cluster else [])
    if missing := [name for name in wanted if find_spec(name) is None]:
        raise InputError(f'this needs {", ".join(missing)}; install with: pip install "armdyn[scale]"')


def needed(module: str) -> Any:
    """Import a module of the extra `scale`, or raise an error that says how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f'this needs {module}; install it with: pip install "armdyn[scale]"') from error


Part = dict[str, np.ndarray]
MAX_EXACT = 4096  # samples up to which all values are kept and quantiles are exact
MANTISSA_BITS = 10  # of a bucket, beyond that: values in one bucket differ by less than 2^-10 of their size


class Reduction(Protocol):
    """The protocol of reductions for `sweep`."""

    @property
    def key(self) -> str:
        """The name of the reduction."""

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """The partial result of a chunk's values (k, ...), which are samples `first` to `first + k` of `total`."""

    def merged(self, a: Part, b: Part) -> Part:
        """Combine two partial results; the chunks of `a` come before those of `b`."""

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """The final labelled variables; `dims` are the axes of the values without the sample axis."""


@dataclass(frozen=True)
class Extremes:
    """The smallest and the largest value, and the samples that have them."""

    key: str = "extremes"

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """See `Reduction`."""
        missing = np.isnan(values)
        low, high = np.where(missing, np.inf, values), np.where(missing, -np.inf, values)
        return {
            "min": low.min(axis=0),
            "max": high.max(axis=0),
            "min_sample": low.argmin(axis=0) + first,
            "max_sample": high.argmax(axis=0) + first,
            "missing": missing.sum(axis=0),
        }

    def merged(self, a: Part, b: Part) -> Part:
        """See `Reduction`."""
        less, more = b["min"] < a["min"], b["max"] > a["max"]
        return {
            "min": np.where(less, b["min"], a["min"]),
            "max": np.where(more, b["max"], a["max"]),
            "min_sample": np.where(less, b["min_sample"], a["min_sample"]),
            "max_sample": np.where(more, b["max_sample"], a["max_sample"]),
            "missing": a["missing"] + b["missing"],
        }

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """See `Reduction`."""
        return {f"{name}_{what}": LabelledArray(dims, np.asarray(x)) for what, x in part.items()}


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation."""

    key: str = "moments"

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """See `Reduction`."""
        there = ~np.isnan(values)
        count = there.sum(axis=0)
        mean = np.where(there, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(there, (values - mean) ** 2, 0.0).sum(axis=0)
        return {"count": count, "mean": mean, "squares": squares}

    def merged(self, a: Part, b: Part) -> Part:
        """Chan, Golub & LeVeque 1983."""
        count = a["count"] + b["count"]
        apart, share = b["mean"] - a["mean"], b["count"] / np.maximum(count, 1)
        squares = a["squares"] + b["squares"] + apart**2 * a["count"] * share
        return {"count": count, "mean": a["mean"] + apart * share, "squares": squares}

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """See `Reduction`."""
        sd = np.sqrt(part["squares"] / np.maximum(part["count"] - 1, 1))
        found = {"mean": part["mean"], "sd": sd, "count": part["count"]}
        return {f"{name}_{what}": LabelledArray(dims, np.asarray(x)) for what, x in found.items()}


@dataclass(frozen=True)
class Histogram:
    """Counts of values in `bins` equal bins from `low` to `high`, below `low`, and at or above `high`."""

    low: float
    high: float
    bins: int = 50
    key: str = "histogram"

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.bins >= 1):
            raise InputError(f"a histogram needs low < high and at least one bin; got {self}")

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """See `Reduction`."""
        flat = values.reshape(len(values), -1)
        place = np.floor((flat - self.low) * (self.bins / (self.high - self.low)))
        counts = np.zeros((self.bins + 2, flat.shape[1]), dtype=np.int64)
        for entry in range(flat.shape[1]):
            there = place[~np.isnan(flat[:, entry]), entry]
            inside = np.clip(there, -1, self.bins).astype(np.int64) + 1
            counts[:, entry] = np.bincount(inside, minlength=self.bins + 2)
        return {"counts": counts.reshape(-1, *values.shape[1:]), "missing": np.isnan(values).sum(axis=0)}

    def merged(self, a: Part, b: Part) -> Part:
        """See `Reduction`."""
        return {name: a[name] + b[name] for name in a}

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """See `Reduction`."""
        counts, edges = part["counts"], np.linspace(self.low, self.high, self.bins + 1)
        return {
            f"{name}_histogram": LabelledArray((f"{name}_bin", *dims), counts[1:-1]),
            f"{name}_bin": LabelledArray((f"{name}_bin",), (edges[1:] + edges[:-1]) / 2),
            f"{name}_below": LabelledArray(dims, np.asarray(counts[0])),
            f"{name}_above": LabelledArray(dims, np.asarray(counts[-1])),
        }


@dataclass(frozen=True)
class Exceeds:
    """The probability that a magnitude exceeds a bound, with its exact confidence interval; a NaN counts as larger."""

    bound: Any
    confidence: float = 0.95
    key: str = "exceeds"

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """See `Reduction`."""
        over = ~(np.abs(values) <= np.asarray(self.bound, dtype=float))
        return {"count": over.sum(axis=0), "samples": np.array(len(values))}

    def merged(self, a: Part, b: Part) -> Part:
        """See `Reduction`."""
        return {name: a[name] + b[name] for name in a}

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """See `Reduction`."""
        found = probability(part["count"], int(part["samples"]), self.confidence)
        values = {"probability": found.value, "lower": found.lower, "upper": found.upper}
        return {f"{name}_exceeds_{what}": LabelledArray(dims, np.asarray(x)) for what, x in values.items()}


@dataclass(frozen=True)
class Quantiles:
    """Quantiles: the ⌈p N⌉-th smallest of N values, exact for studies of up to 4096 samples.

    With more samples, values are counted in buckets of equal sign, exponent and first ten bits of the mantissa, as in
    an HdrHistogram. The result is the middle of the exact value's bucket, with a relative error below 2⁻¹¹ (0.05 %).
    Counts are additive, so the result does not depend on the chunk size.
    """

    probabilities: tuple[float, ...] = (0.05, 0.5, 0.95)
    key: str = "quantiles"

    def __post_init__(self) -> None:
        given = self.probabilities if isinstance(self.probabilities, Sequence) else tuple(self.probabilities)
        if not given or not all(0 <= p <= 1 for p in given):
            raise InputError(f"quantiles need probabilities from 0 to 1, got {given!r}")
        object.__setattr__(self, "probabilities", tuple(float(p) for p in given))

    def partial(self, values: np.ndarray, first: int, total: int) -> Part:
        """See `Reduction`."""
        shape = np.array(values.shape[1:], dtype=np.int64)
        if total <= MAX_EXACT:
            return {"shape": shape, "values": np.asarray(values, dtype=float)}
        flat = np.asarray(values, dtype=float).reshape(len(values), -1)
        entry = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
        there = ~np.isnan(flat)
        return {"shape": shape, **_counted(entry[there], buckets(flat[there]), None)}

    def merged(self, a: Part, b: Part) -> Part:
        """See `Reduction`."""
        if "values" in a:
            return {"shape": a["shape"], "values": np.concatenate([a["values"], b["values"]])}
        both = {name: np.concatenate([a[name], b[name]]) for name in ("entry", "bucket", "count")}
        return {"shape": a["shape"], **_counted(both["entry"], both["bucket"], both["count"])}

    def finished(self, part: Part, name: str, dims: tuple[str, ...]) -> Variables:
        """See `Reduction`."""
        shape = tuple(int(x) for x in part["shape"])
        entries = int(np.prod(shape, dtype=int))
        found = np.full((len(self.probabilities), entries), np.nan)
        for k, (values, counts) in enumerate(_by_entry(part, entries)):
            if len(values):
                found[:, k] = _order_statistics(values, counts, self.probabilities)
        return {
            f"{name}_quantile": LabelledArray(("quantile", *dims), found.reshape(-1, *shape)),
            "quantile": LabelledArray(("quantile",), np.array(self.probabilities)),
        }


def _by_entry(part: Part, entries: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Values and counts, entry by entry."""
    if "values" in part:
        for column in part["values"].reshape(len(part["values"]), -1).T:
            there = column[~np.isnan(column)]
            yield there, np.ones(len(there), dtype=np.int64)
        return
    ends = np.searchsorted(part["entry"], np.arange(entries + 1))  # sorted by entry
    for first, stop in pairwise(ends):
        yield middles(part["bucket"][first:stop]), part["count"][first:stop]


def _counted(entry: np.ndarray, bucket: np.ndarray, count: np.ndarray | None) -> Part:
    """Counts by entry and bucket, sorted."""
    order = np.lexsort((bucket, entry))
    entry, bucket = entry[order], bucket[order]
    counts = np.ones(len(order), dtype=np.int64) if count is None else count[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(entry) != 0) | (np.diff(bucket) != 0)
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    return {"entry": entry[starts], "bucket": bucket[starts], "count": sums}


def buckets(values: np.ndarray) -> np.ndarray:
    """The bucket of every value, as integers in the order of the values: sign, exponent and first mantissa bits."""
    bits = np.ascontiguousarray(np.where(values == 0, 0.0, values)).view(np.int64)
    magnitude = (bits & np.int64(2**63 - 1)) >> np.int64(52 - MANTISSA_BITS)
    return np.where(bits < 0, -magnitude - 1, magnitude)


def middles(bucket: np.ndarray) -> np.ndarray:
    """The number in the middle of each bucket."""
    magnitude = np.where(bucket < 0, -bucket - 1, bucket).astype(np.int64)
    low = (magnitude << np.int64(52 - MANTISSA_BITS)).view(np.float64)
    high = ((magnitude + 1) << np.int64(52 - MANTISSA_BITS)).view(np.float64)
    middle = np.where(magnitude == 0, 0.0, np.where(np.isfinite(high), low + (high - low) / 2, low))
    return np.where(bucket < 0, -middle, middle)


def _order_statistics(values: np.ndarray, counts: np.ndarray, probabilities: Sequence[float]) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    ranks = np.maximum(np.ceil(np.array(probabilities) * below[-1] * (1 - 1e-15)), 1)
    statistics: np.ndarray = values[order][np.searchsorted(below, ranks)]
    return statistics


KINDS: dict[str, Callable[[Any], Reduction]] = {
    "quantiles": lambda given: Quantiles(tuple(given)) if given is not True else Quantiles(),
    "extremes": lambda given: Extremes(),
    "moments": lambda given: Moments(),
    "histogram": lambda given: Histogram(**given),
    "exceeds": lambda given: Exceeds(**given) if isinstance(given, Mapping) else Exceeds(given),
}


def from_table(table: Mapping[str, Any]) -> tuple[Reduction, ...]:
    """The reductions of a study file: ``quantiles = [0.05, 0.95]``, ``extremes = true``, ``histogram = {...}``."""
    return tuple(KINDS[choose("reduction", name, KINDS)](given) for name, given in table.items() if given is not False)
