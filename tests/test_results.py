"""What results share: a table with units, a summary, a page, files, and what a notebook shows."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import armdyn
from armdyn.calibration import Calibration
from armdyn.comparison import Comparison
from armdyn.identification.payload import Gains, Payload
from armdyn.motion import TimeOptimal
from armdyn.programs.cost import Cost
from armdyn.results import Result
from armdyn.uncertainty import Outcome, SobolIndices

ARM = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
CLASSES = (
    armdyn.Estimate, armdyn.ServoEstimate, armdyn.Excitation, armdyn.Trajectory, armdyn.Bound, armdyn.RoundingError,
    armdyn.Plan, Outcome, SobolIndices, Calibration, Comparison, Cost, Gains, Payload, TimeOptimal,
)  # fmt: skip


def made():
    rng = np.random.default_rng(3)
    yield armdyn.cost(ARM, "bias")
    yield armdyn.compare(ARM, armdyn.load("planar3"), samples=1)
    yield armdyn.bound(ARM, "gravity_load", q=[[0, 0.5]] * 3, seconds=5)
    yield armdyn.rounding_error(ARM, "gravity_load", q=[[0, 0.5]] * 3, boxes=4)
    yield armdyn.simulate(ARM, duration=0.01)
    yield armdyn.Plan(rng.normal(size=(4, 3)), ("d1", "theta1"), np.array([1e-4, 2e-4]), 3.0, 2.0, ARM)
    yield Outcome(armdyn.Uncertain(ARM, link_coms=armdyn.Normal(0, 0.01)).sample(8), rng.normal(size=(8, 2)))
    share = rng.uniform(size=(2, 3))
    yield SobolIndices(("m1", "m2"), share, share, np.stack([share, share]), np.stack([share, share]))
    yield Gains(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    yield Payload(1.5, np.zeros(3), np.eye(3), np.arange(10.0), np.ones(10), 0.01, ())


def test_all_results_have_the_same_methods():
    for kind in CLASSES:
        assert issubclass(kind, Result), kind
        assert kind.table is not Result.table, f"{kind.__name__} has a table of its own"
        for name in ("table", "summary", "plot", "save", "_repr_html_"):
            assert callable(getattr(kind, name)), f"{kind.__name__}.{name}"


@pytest.fixture(scope="module")
def results():
    return list(made())


def test_tables_are_shown_saved_and_read_again(results, tmp_path):
    for k, result in enumerate(results):
        table, name = result.table(), type(result).__name__
        assert table.rows, name
        assert {len(row) for row in table.rows} == {len(table.columns)}, name
        text = result.summary()
        assert text.strip(), name
        assert all(column in str(table) for column in table.columns)
        assert "<table" in result._repr_html_(), name
        assert "<html" in result.plot().html.lower(), name
        if type(result).save is not Result.save:  # writes something better than its table
            continue
        paths = {suffix: tmp_path / f"{k}.{suffix}" for suffix in ("csv", "json", "html")}
        for path in paths.values():
            result.save(path)
        head, *rows = csv.reader(paths["csv"].read_text().splitlines())
        known = json.loads(paths["json"].read_text())
        assert tuple(head) == tuple(known["columns"]) == table.columns
        assert len(rows) == len(known["rows"]) == len(table.rows)
        for row, same, whole in zip(rows, known["rows"], table.rows, strict=True):
            for a, b, c in zip(row, same, whole, strict=True):
                assert a == ("" if c is None else str(c)), name  # every digit
                assert b == c or (b != b and c != c), name
        assert paths["html"].read_text() == result.plot().html
        with pytest.raises(armdyn.ArmdynError, match=r"saved as \.csv, \.json or \.html"):
            result.save(tmp_path / "x.xlsx")
