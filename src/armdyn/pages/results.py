"""Pages of results: bounds, outcomes of samples, shares of the variance, calibration poses, sweeps.

The results' own modules stand above this one, so their types are not named here: each function says what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.pages.motion import PLOT_HEIGHT, View, canvases, chart_page, motion, motion_page, short
from armdyn.pages.writer import section, table

TORQUES = ("gravity_load", "bias", "inverse_dynamics")  # quantities that are the motors' torques at a configuration
SPREAD = (0.025, 0.25, 0.5, 0.75, 0.975)
MOST = 60  # entries of a chart; more cannot be told apart
Chart = dict[str, Any]


def entries(shape: tuple[int, ...], joints: Sequence[str] = ()) -> list[str]:
    """Names of the entries of an array: of vectors with one entry per joint, the joints' names."""
    if len(shape) == 1 and len(joints) == shape[0]:
        return list(joints)
    return [", ".join(str(k + 1) for k in at) or "value" for at in np.ndindex(*shape)]


def intervals(label: str, names: Sequence[str], legend: Sequence[str], **columns: Any) -> Chart:
    """A chart of one interval per name: `low` and `high`, `values` and further marks (`box`, `prior`, `limits`)."""
    if len(names) > MOST:
        raise InputError(f"a chart shows at most {MOST} entries, got {len(names)}; plot a part of them")
    marks = {key: [short(np.atleast_1d(x)) for x in value] if key == "box" else short(value) for key, value in
             columns.items() if value is not None}  # fmt: skip
    return {"y": label, "names": list(names), "legend": list(legend), **marks}


def with_units(label: str, names: Sequence[str], units: Sequence[str]) -> tuple[str, list[str]]:
    """The label and the names of a chart's entries: the label has their unit where it is one, else each name its own.

    No `units` are of numbers whose unit is not known.
    """
    if len(set(units)) < 2:
        return f"{label} [{units[0]}]" if units else label, list(names)
    return label, [f"{name} [{unit}]" for name, unit in zip(names, units, strict=True)]


def of_limits(
    label: str, names: Sequence[str], units: Sequence[str], limits: Any, columns: dict[str, Any]
) -> tuple[str, list[str], dict[str, Any]]:
    """The label, names and columns of a chart: in percent of the limits if there are any, else in their units."""
    if limits is None:
        return *with_units(label, names, units), columns
    size = np.abs(np.asarray(limits, dtype=float))
    if not (np.isfinite(size) & (size > 0)).all():
        return *with_units(label, names, units), {**columns, "limits": limits}
    scaled = {key: 100 * np.asarray(x, dtype=float) / size for key, x in columns.items()}
    return f"{label} [% of the limit]", list(names), {**scaled, "limits": np.full(size.shape, 100.0)}


def bound_page(bound: Any) -> View:
    """Of a `Bound`: the bounds of every entry, and the arm in the extreme configurations that were found."""
    arm = bound.arm
    names = entries(np.shape(bound.upper), arm.joint_names)
    title = f"{arm.name}: bounds of {bound.quantity}"
    ends = {"low": bound.lower, "high": bound.upper, "values": bound.found[1], "prior": bound.found[0]}
    columns = {key: np.ravel(x) for key, x in ends.items()}
    efforts = _efforts(arm, bound.quantity, names)
    label, said, columns = of_limits(bound.quantity, names, bound.units, efforts, columns)
    chart = intervals(label, said, ["guaranteed bounds and largest value found", "smallest value found"], **columns)
    chart["legend"] += ["limit of the motor"] if "limits" in chart else []
    bounds = bound.table()
    rows = [(name, *row[1:]) for name, row in zip(names, bounds.rows, strict=True)]
    sections = section("bounds", "Guaranteed bounds", canvases([chart]) + table("", bounds.columns, rows))
    q = np.asarray(bound.witness["q"], dtype=float).reshape(2, len(names), -1)
    value = np.abs(np.ravel(bound.found[0])), np.abs(np.ravel(bound.found[1]))
    order = np.argsort(-np.maximum(*value), kind="stable")
    shown = [(int(value[1][k] >= value[0][k]), int(k)) for k in order[:MOST]]
    tau = _witnessed(bound, shown)
    said = [f"{('smallest', 'largest')[side]} {names[k]}" for side, k in shown]
    data = _scrubbed(arm, np.array([q[at] for at in shown]), tau, said)
    data["charts"] = [chart]
    return View(motion_page(title, repr(bound)[1:-1], data, sections), title)


def _efforts(arm: Arm, quantity: str, names: Sequence[str]) -> Any:
    limits = np.asarray(arm.effort_limits, dtype=float)
    return limits if quantity in TORQUES and len(limits) == len(names) and np.isfinite(limits).any() else None


def _witnessed(bound: Any, shown: Sequence[tuple[int, int]]) -> np.ndarray:
    """The torques in the configurations shown: the quantity itself if it is one, else the gravity load."""
    arm, quantity = bound.arm, bound.quantity if bound.quantity in TORQUES else "gravity_load"
    inputs = [name for name, _ in arm.kernel(quantity).assembly.inputs]
    sides = {name: np.asarray(x, dtype=float) for name, x in bound.witness.items()}
    count = int(np.prod(np.shape(bound.upper), dtype=int))
    torques = []
    for side, k in shown:
        at = [sides[name].reshape(2, count, -1)[side, k] for name in inputs]
        mass = float(sides["payload"].reshape(2, count)[side, k]) if "payload" in sides else 0.0
        torques.append(getattr(arm.with_payload(mass) if mass else arm, quantity)(*at))
    return np.array(torques)


def _scrubbed(arm: Arm, q: np.ndarray, tau: np.ndarray, said: Sequence[str]) -> dict[str, Any]:
    """The data of a page with the arm in several configurations, each with its words."""
    data = motion(arm, np.arange(len(q), dtype=float), q, tau, ())
    data["motion"] |= {"postures": True, "labels": list(said)}
    return data


def outcome_page(outcome: Any, limit: Any = None) -> View:
    """Of an `Outcome`: the distribution of every entry over the samples, with the limits."""
    arm = outcome.samples.uncertain.arm
    values = np.asarray(outcome.values, dtype=float).reshape(len(outcome.values), -1)
    names = entries(outcome.values.shape[1:], arm.joint_names)
    limits = (
        None if limit is None else np.broadcast_to(np.asarray(limit, dtype=float), outcome.values.shape[1:]).ravel()
    )
    finite = np.where(np.isfinite(values), values, np.nan)
    failed = int((~np.isfinite(values)).any(axis=1).sum())
    low, first, middle, third, high = np.nanquantile(finite, SPREAD, axis=0)
    worst = finite[np.nanargmax(np.abs(finite), axis=0), np.arange(finite.shape[1])]
    columns = {"low": low, "high": high, "values": middle, "box": (first, third), "prior": worst}
    label, shown, columns = of_limits(outcome.quantity or "value", names, outcome.units, limits, columns)
    legend = ["95 %, half and median of the samples", "worst", *([] if limit is None else ["limit"])]
    chart = intervals(label, shown, legend, **columns)
    said = f"{len(values)} samples of {arm.name}" + (f", {failed} without a result" if failed else "")
    heads = ["entry", *(["unit"] if outcome.units else []), "mean", "deviation", "2.5 %", "median", "97.5 %", "worst"]
    moments = (np.nanmean(finite, axis=0), np.nanstd(finite, axis=0, ddof=1), low, middle, high, worst)
    unit = [[x] for x in outcome.units] or [[]] * len(names)
    rows = [[name, *own, *map(float, row)] for name, own, *row in zip(names, unit, *moments, strict=True)]
    if limits is not None:
        over = outcome.exceeds(np.asarray(limit, dtype=float))
        heads += ["limit", "above it [%]", "95 % interval [%]"]
        for row, most, *chance in zip(rows, limits, *map(np.ravel, (over.value, over.lower, over.upper)), strict=True):
            share, least, largest = (100 * float(x) for x in chance)
            row += [float(most), share, f"{least:.3g} to {largest:.3g}"]
    return chart_page(f"{arm.name}: outcome", said, [chart], table("", heads, rows))


def shares_page(indices: Any) -> View:
    """Of `SobolIndices`: every variable, the largest first; of several entries, the one that it matters most to."""
    total, first = (x.reshape(len(indices.names), -1) for x in (indices.total, indices.first))
    ends = indices.total_interval.reshape(2, len(indices.names), -1)
    entry = np.nanargmax(total, axis=1)
    rows = np.argsort(-total.max(axis=1), kind="stable")[:MOST]
    at = (rows, entry[rows])
    chart = intervals(
        "share of the variance", [indices.names[k] for k in rows], ["total, 95 % interval", "first order"],
        low=ends[0][at], high=ends[1][at], values=total[at], prior=first[at],
    )  # fmt: skip
    cells = [(indices.names[k], int(entry[k]) + 1, float(first[k, entry[k]]), float(total[k, entry[k]])) for k in rows]
    said = f"{len(indices.names)} uncertain variables"
    return chart_page("Sobol' indices", said, [chart], table("", ["variable", "entry", "first order", "total"], cells))


def plan_page(plan: Any) -> View:
    """Of a calibration's `Plan`: the poses to measure, and the deviation to expect of each constant."""
    arm, title = plan.arm, f"{plan.arm.name}: {len(plan.q)} poses to measure"
    label = "standard deviation to expect [mm, mrad]"
    deviations = 1e3 * plan.deviations
    chart = intervals(label, plan.names, ["± 1 σ"], values=np.zeros(len(deviations)), low=-deviations, high=deviations)
    rows = [(name, float(x)) for name, x in zip(plan.names, deviations, strict=True)]
    sections = section("constants", "Constants", canvases([chart]) + table("", ["constant", label], rows))
    said = [f"pose {k + 1} of {len(plan.q)}" for k in range(len(plan.q))]
    data = _scrubbed(arm, plan.q, arm.gravity_load(plan.q), said)
    data["charts"] = [chart]
    return View(motion_page(title, f"deviations {plan.gain:.2f} times smaller than of random poses", data, sections),
                title, PLOT_HEIGHT + 300)  # fmt: skip


def sweep_page(result: Any, title: str = "Sweep", units: Mapping[str, Sequence[str]] | None = None) -> View:
    """Of an `xarray.Dataset`: quantiles of every entry, or the distribution over the samples.

    `units` are those of the variables by name: one, or one per joint.
    """
    charts, rows = [], []
    for name, variable in result.data_vars.items():
        values = np.asarray(variable, dtype=float)
        axis = next((d for d in ("quantile", "sample") if d in variable.dims), None)
        if axis is None or values.size == 0:
            continue
        moved = np.moveaxis(values, variable.dims.index(axis), 0).reshape(values.shape[variable.dims.index(axis)], -1)
        left = [d for d in variable.dims if d != axis]
        places = list(np.ndindex(*(variable.sizes[d] for d in left)))
        labels = [", ".join(f"{d} {variable[d].values[k] if d in variable.coords else k + 1}"
                  for d, k in zip(left, at, strict=True)) or str(name) for at in places]  # fmt: skip
        known = (units or {}).get(str(name).removesuffix("_quantile"), ())
        own = [known[at[left.index("joint")] if len(known) > 1 else 0] for at in places] if known else []
        low, middle, high = _three(moved, axis, variable)
        ends = (own or [""] * len(labels), low, middle, high)
        rows += [(str(name), label, unit, *map(float, row)) for label, unit, *row in zip(labels, *ends, strict=True)]
        if len(labels) <= MOST:
            legend = ["least, middle and largest quantile" if axis == "quantile" else "95 % and median of the samples"]
            label, names = with_units(str(name), labels, own)
            charts.append(intervals(label, names, legend, low=low, high=high, values=middle))
    heads = ["variable", "entry", "unit", "low", "middle", "high"]
    return chart_page(title, f"{len(rows)} values", charts, table("", heads, rows[:1000]))


def _three(values: np.ndarray, axis: str, variable: Any) -> Any:
    if axis == "quantile":
        order = np.argsort(np.asarray(variable["quantile"]))
        return values[order[0]], values[order[len(order) // 2]], values[order[-1]]
    return np.nanquantile(values, (SPREAD[0], 0.5, SPREAD[-1]), axis=0)
