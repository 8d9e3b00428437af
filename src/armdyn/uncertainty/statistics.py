"""Statistics of samples: quantiles, probabilities with confidence intervals, the worst sample, Sobol' indices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, required
from armdyn.results import Result, ResultTable
from armdyn.values import ComparedByValue

if TYPE_CHECKING:
    from armdyn.pages.motion import View
    from armdyn.uncertainty.uncertain import Samples

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probability(ComparedByValue):
    """The estimated probability of an event, with its confidence interval.

    The interval is that of Clopper and Pearson (1934): exact, so never too narrow, however rare the event.
    """

    count: Any
    samples: int
    confidence: float
    value: Any
    lower: Any
    upper: Any

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"<Probability of {np.shape(self.value)} events in {self.samples} samples: {self.value}>"
        return (
            f"<Probability {self.value:.4g}, {self.lower:.4g} to {self.upper:.4g} with {100 * self.confidence:g} % "
            f"confidence: {self.count} of {self.samples} samples>"
        )


def probability(count: Any, samples: int, confidence: float = 0.95) -> Probability:
    """The probability of an event that occurred `count` times in a number of independent samples."""
    required("scipy")
    from scipy.special import betaincinv  # scipy.stats takes half a second to import

    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if samples < 1:
        raise InputError("a probability needs at least one sample")
    k, tail = np.asarray(count), (1 - confidence) / 2
    with np.errstate(all="ignore"):
        lower = np.where(k == 0, 0.0, betaincinv(k, samples - k + 1, tail))
        upper = np.where(k == samples, 1.0, betaincinv(k + 1, samples - k, 1 - tail))
    numbers = [k, k / samples, lower, upper]
    events, value, low, high = numbers if k.ndim else [np.asarray(x).item() for x in numbers]
    return Probability(events, samples, confidence, value, low, high)


@dataclass(frozen=True, eq=False)
class Outcome(Result):
    """The result for each sample, `values` (k, ...); NaN if a sample has none (a simulation that failed)."""

    samples: Samples
    values: Array
    quantity: str = ""  # that was evaluated; "" of other numbers
    units: tuple[str, ...] = ()  # of every entry, in order; () where they are not known

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def mean(self) -> Any:
        """The mean over the samples."""
        return self.values.mean(axis=0)

    @property
    def sd(self) -> Any:
        """The standard deviation over the samples."""
        return self.values.std(axis=0, ddof=1)

    @property
    def covariance(self) -> Any:
        """The covariance of values (k, n): (n, n)."""
        return np.cov(self.values, rowvar=False)

    def quantiles(self, probabilities: Any) -> Any:
        """Quantiles over the samples, the first axis running over `probabilities`."""
        return np.quantile(self.values, probabilities, axis=0)

    def exceeds(self, bound: Any, confidence: float = 0.95) -> Probability:
        """The probability that the magnitude is larger than `bound`; a NaN counts as larger."""
        over = ~(np.abs(self.values) <= np.asarray(bound, dtype=float))
        return probability(over.sum(axis=0), len(self.values), confidence)

    def plot(self, limit: Any = None) -> View:
        """A page with the distribution of every entry, and the probability that its magnitude is above `limit`."""
        from armdyn.pages.results import outcome_page

        return outcome_page(self, limit)

    def table(self) -> ResultTable:
        """The distribution of every entry over the samples that have it."""
        columns = [
            "entry",
            *(["unit"] if self.units else []),
            "mean",
            "standard deviation",
            "smallest",
            "5 %",
            "median",
            "95 %",
            "largest",
            "without",
        ]
        rows: list[tuple[Any, ...]] = []
        for k, at in enumerate(np.ndindex(*self.values.shape[1:])):
            values = self.values[(slice(None), *at)]
            known = values[~np.isnan(values)]
            where = (", ".join(str(i + 1) for i in at) or "value", *self.units[k : k + 1])
            if not known.size:
                rows.append((*where, *[None] * 7, len(values)))
                continue
            ends = np.quantile(known, [0.0, 0.05, 0.5, 0.95, 1.0])
            spread = float(known.std(ddof=1)) if known.size > 1 else None
            rows.append((*where, float(known.mean()), spread, *map(float, ends), len(values) - known.size))
        return ResultTable.of(repr(self)[1:-1], columns, rows)

    def worst(self) -> Worst:
        """The sample with the largest magnitude; a NaN counts as larger than any number."""
        size = np.where(np.isnan(self.values), math.inf, np.abs(self.values)).reshape(len(self.values), -1)
        row, entry = np.unravel_index(int(np.argmax(size)), size.shape)
        at = tuple(int(x) for x in np.unravel_index(int(entry), self.values.shape[1:]))
        return Worst(self.samples, int(row), at, float(self.values[(row, *at)]))

    def __repr__(self) -> str:
        return f"<Outcome {self.values.shape[1:]} of {len(self.values)} samples of {self.samples.uncertain.arm.name}>"


@dataclass(frozen=True, eq=False)
class Worst:
    """The worst sample: its row among the samples, and the entry and value there."""

    samples: Samples
    row: int
    entry: tuple[int, ...]
    value: float

    @property
    def index(self) -> int:
        """The index with which `Uncertain.sample(1, first=index)` reproduces this sample."""
        return self.samples.first + self.row

    @property
    def inputs(self) -> dict[str, float]:
        """The values of its uncertain variables by name."""
        variables = self.samples.uncertain.variables
        values = self.samples[self.row : self.row + 1].values[0]
        return {v.name: float(x) for v, x in zip(variables, values, strict=True)}

    @property
    def arm(self) -> Any:
        """The arm of this sample."""
        return self.samples.arm(self.row)

    def __repr__(self) -> str:
        return f"<Worst: {self.value:.6g} at entry {self.entry} of sample {self.index}>"


@dataclass(frozen=True, eq=False)
class SobolIndices(Result):
    """Sobol' indices, shares of the variance by variable: of first order (`first`) and `total`, each (d, ...).

    `first_interval` and `total_interval` are (2, d, ...): 95 % bootstrap intervals.
    """

    names: tuple[str, ...]
    first: Array
    total: Array
    first_interval: Array
    total_interval: Array

    def plot(self) -> View:
        """A page with the indices of every variable, the largest first."""
        from armdyn.pages.results import shares_page

        return shares_page(self)

    def table(self) -> ResultTable:
        """The shares of the variance of every entry, by variable, the largest first, with 95 % intervals."""
        columns = ["variable", "entry", "first order", "from", "to", "total", "from", "to"]
        size = self.total.reshape(len(self.names), -1)
        rows = []
        for k in np.argsort(-size.max(axis=1), kind="stable"):
            for at in np.ndindex(*self.total.shape[1:]):
                place = (k, *at)
                first, total = ((x[place], *y[(slice(None), *place)]) for x, y in (
                    (self.first, self.first_interval), (self.total, self.total_interval)
                ))  # fmt: skip
                where = ", ".join(str(i + 1) for i in at)
                rows.append((self.names[k], where, *map(float, first), *map(float, total)))
        return ResultTable.of("Sobol' indices: shares of the variance", columns, rows)

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table("variable", "first order", "total", title="Sobol' indices (shares of the variance)")
        for k in np.argsort(-self.total.reshape(len(self.names), -1).max(axis=1)):
            first, total = (np.array2string(np.asarray(x[k]), precision=3) for x in (self.first, self.total))
            table.add_row(self.names[k], first, total)
        return table
