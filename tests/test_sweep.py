"""Studies in chunks: the same bits however they are cut and where they run, resumed, refused where they do not fit."""

from __future__ import annotations

import errno
import json
import pickle
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import armdyn
from armdyn import Normal, Uncertain, Uniform
from armdyn.cli import app
from armdyn.errors import ComputationError, FileError, InputError
from armdyn.sweeps import (
    Bootstrap,
    Capability,
    DataSet,
    Design,
    Exceeds,
    Extremes,
    Histogram,
    Moments,
    Quantiles,
    Robustness,
    designs,
    read_study,
    sweep,
)
from armdyn.sweeps import reductions as reducing
from armdyn.sweeps.reductions import LabelledArray, labelled
from armdyn.sweeps.stores import Folder, store_at
from armdyn.sweeps.study import Study, described, digest, packed, unpacked

pytest.importorskip("xarray")


@lru_cache(maxsize=1)
def arm():
    return armdyn.load("two_link") if "two_link" in armdyn.catalogue() else planar()


def planar():
    rows = [
        {"theta": 0, "d": 0, "a": 0.5, "alpha": 0, "mass": 2.0, "com": [-0.25, 0, 0], "inertia": [0.01] * 3 + [0] * 3,
         "lower": -2.0, "upper": 2.0, "velocity": 3.0, "effort": 40.0, "name": name}
        for name in ("shoulder", "elbow")
    ]  # fmt: skip
    return armdyn.from_dh(rows, name="planar", gravity=(0, -9.81, 0))


def samples(count=100):
    return Uncertain(arm(), payload_mass=Uniform(0, 2), link_masses=Normal(1, 0.1), seed=3).sample(count)


@dataclass(frozen=True)
class Torques:
    """The gravity load at a few postures; `calls` is where each call leaves a line."""

    calls: str = ""

    def __call__(self, arm, samples):
        if self.calls:
            with open(self.calls, "a") as lines:
                lines.write(f"{samples.first} {len(samples)}\n")
        q = np.array([[0.1, 0.2], [0.5, -0.3], [1.0, 1.0]])
        tau = samples.evaluate("gravity_load", q).values
        return {
            "tau": (("sample", "posture", "joint"), tau),
            "angle": ("posture", q[:, 0]),
            "mass": samples.values[:, 0],
        }


EVERYTHING = [Quantiles((0.05, 0.5, 0.95)), Extremes(), Moments(), Histogram(-60, 60, 12), Exceeds(10.0)]


def test_results_are_labelled_and_do_not_depend_on_threads_or_chunks():
    one = sweep(arm(), Torques(), samples(), chunk=1000, threads=1)
    many = sweep(arm(), Torques(), samples(), chunk=7, threads=3)
    assert one.tau.dims == ("sample", "posture", "joint")
    assert list(one.joint.values) == [j.name for j in arm().joints]
    assert one.attrs["arm"] == arm().name
    assert one.attrs["seed"] == 3
    assert one.attrs["armdyn"] == armdyn.__version__
    assert one.equals(many)
    alone = samples(100)[37:38].evaluate("gravity_load", [0.5, -0.3]).values[0]
    assert np.array_equal(one.tau.values[37, 1], alone)


def test_a_number_per_sample_is_no_joint_though_the_chunk_has_as_many_samples_as_the_arm_joints():
    found = labelled({"mass": np.arange(2.0), "tau": np.ones((2, 2)), "grid": np.ones((2, 3))}, arm().n, arm())
    assert {name: x.dims for name, x in found.items()} == {
        "mass": ("sample",), "tau": ("sample", "joint"), "grid": ("sample", "grid_1")
    }  # fmt: skip


@pytest.mark.parametrize(("count", "refused"), [(1000, False), (1001, True)])
def test_a_table_has_at_most_a_thousand_columns_of_a_variable(tmp_path, count, refused):
    variables = {"map": LabelledArray(("sample", "cell"), np.zeros((2, count)))}
    store = store_at(tmp_path / "wide.parquet")
    with pytest.raises(InputError, match=r"map has more than 1000 .*use Zarr") if refused else nullcontext():
        store.create(variables, {}, {}, 2)


@pytest.mark.parametrize("exact", [True, False])
def test_reductions_agree_with_numpy(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(reducing, "MAX_EXACT", 0)
    whole = sweep(arm(), Torques(), samples(500), chunk=500).tau.values
    found = sweep(arm(), Torques(), samples(500), reduce={"tau": EVERYTHING}, chunk=77)
    expected = np.quantile(whole, (0.05, 0.5, 0.95), axis=0, method="inverted_cdf")
    tolerance = 0 if exact else 2.0**-11
    np.testing.assert_allclose(found.tau_quantile, expected, rtol=tolerance)
    assert np.array_equal(found.tau_max, whole.max(axis=0))
    assert np.array_equal(found.tau_max_sample, whole.argmax(axis=0))
    np.testing.assert_allclose(found.tau_mean, whole.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.tau_sd, whole.std(axis=0, ddof=1), rtol=1e-12)
    counts = found.tau_histogram.values.sum(axis=0) + found.tau_below.values + found.tau_above.values
    assert (counts == 500).all()
    assert np.array_equal(found.tau_histogram.values[:, 2, 0], np.histogram(whole[:, 2, 0], 12, (-60, 60))[0])
    assert np.array_equal(found.tau_exceeds_probability.values, (np.abs(whole) > 10).mean(axis=0))


def test_quantiles_of_hard_values(monkeypatch):
    """Signs, zeros, subnormal and huge numbers and NaN: every quantile is in the bucket of the exact one."""
    monkeypatch.setattr(reducing, "MAX_EXACT", 0)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=500) * 10.0 ** rng.uniform(-300, 300, 500), [0.0, -0.0, 5e-324, np.nan]])
    reduction = Quantiles(tuple(np.linspace(0, 1, 41)))
    parts = [reduction.partial(piece[:, None], 0, len(x)) for piece in np.array_split(rng.permutation(x), 7)]
    total = parts[0]
    for part in parts[1:]:
        total = reduction.merged(total, part)
    found = reduction.finished(total, "x", ())["x_quantile"].values[:, 0]
    there = np.sort(x[~np.isnan(x)])
    ranks = np.maximum(np.ceil(np.array(reduction.probabilities) * len(there)), 1).astype(int) - 1
    np.testing.assert_allclose(found, there[ranks], rtol=2.0**-11, atol=1e-310)


def test_the_probability_interval_covers():
    """Clopper and Pearson's interval holds the true probability at least as often as it says."""
    rng = np.random.default_rng(1)
    found = armdyn.uncertainty.probability(rng.binomial(200, 0.03, 2000), 200, 0.9)
    assert ((found.lower <= 0.03) & (found.upper >= 0.03)).mean() > 0.9
    assert stats.binom.cdf(found.count[0], 200, found.upper[0]) == pytest.approx(0.05)


def test_a_table_resumes_and_loses_nothing_but_the_chunk_at_hand(tmp_path, monkeypatch):
    out, calls = tmp_path / "study.parquet", tmp_path / "calls"
    calls.touch()
    real = Folder.write

    def full(self, name, content):
        if name.startswith("part-00000003"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, name, content)

    monkeypatch.setattr(Folder, "write", full)
    with pytest.raises(ComputationError, match=r"chunk 3 .* No space left .* run the sweep again"):
        sweep(arm(), Torques(str(calls)), samples(), out=out, chunk=10, threads=1)
    monkeypatch.setattr(Folder, "write", real)
    stored = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    before = len(calls.read_text().splitlines())
    assert 3 <= len(stored) < 10
    found = sweep(arm(), Torques(str(calls)), samples(), out=out, chunk=10, threads=1)
    table = found.to_table().to_pandas().sort_values("sample")
    expected = sweep(arm(), Torques(), samples(), chunk=10)
    assert np.array_equal(table["tau2_1"], expected.tau.values[:, 1, 0])
    assert {name: (out / name).stat().st_mtime_ns for name in stored} == stored
    computed = len(calls.read_text().splitlines()) - before - 1  # one sample shows what the variables are
    assert computed == 10 - len(stored)
    again = len(calls.read_text().splitlines())
    sweep(arm(), Torques(str(calls)), samples(), out=out, chunk=10)
    assert len(calls.read_text().splitlines()) == again + 1


def test_a_full_disk_is_said_with_the_path_and_how_to_go_on(tmp_path, monkeypatch):
    """While a Zarr store is created, and in its chunks; with space the sweep goes on."""
    zarr, out = pytest.importorskip("zarr"), tmp_path / "study.zarr"

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(zarr.Group, "create_array", full)
        with pytest.raises(FileError, match=r"study\.zarr cannot be written: .*No space left.* again to resume"):
            sweep(arm(), Torques(), samples(20), out=out, chunk=10, threads=1)
    with monkeypatch.context() as patched:
        real = zarr.Array.__setitem__
        patched.setattr(zarr.Array, "__setitem__", lambda x, at, new: real(x, at, new) if at is Ellipsis else full())
        with pytest.raises(ComputationError, match=r"No space left.*study\.zarr, run the sweep again to resume"):
            sweep(arm(), Torques(), samples(20), out=out, chunk=10, threads=1)
    assert sweep(arm(), Torques(), samples(20), out=out, chunk=10, threads=1).sizes["sample"] == 20


def test_another_studys_place_is_refused(tmp_path):
    out = tmp_path / "study.parquet"
    sweep(arm(), Torques(), samples(), out=out, chunk=50)
    other = Uncertain(arm(), payload_mass=Uniform(0, 3), seed=3).sample(100)
    for given in ({"chunk": 25}, {"samples": other}, {"samples": samples(101)}, {"arm": arm().with_payload(1.0)}):
        asked = {"arm": arm(), "compute": Torques(), "samples": samples(), "chunk": 50} | given
        with pytest.raises(FileError, match="belongs to another study"):
            sweep(**asked, out=out)


def test_an_error_in_a_chunk_says_which():
    def breaks(arm, samples):
        if samples.start >= 20:
            raise ZeroDivisionError("no such posture")
        return {"x": np.zeros(len(samples))}

    with pytest.raises(ComputationError, match=r"chunk 2 \(samples 20 to 29\) failed: ZeroDivisionError: no such"):
        sweep(arm(), breaks, 40, chunk=10, threads=1)


def test_a_study_travels_with_its_arms_as_files():
    study = Study(arm(), Torques(), samples(), 10)
    content = packed(study)
    assert b"Fraction" not in content
    assert b"[[joint]]" in content
    there = unpacked(content)
    assert there.arm == arm()
    assert there.arm is there.samples.uncertain.arm
    assert there.attributes == study.attributes
    assert np.array_equal(there.run(10, 20)["tau"].values, study.run(10, 20)["tau"].values)


def test_a_study_stays_the_same_where_a_module_of_armdyn_moves(monkeypatch):
    before = described(Moments()), described(armdyn.sweeps.designs)
    monkeypatch.setattr(Moments, "__module__", "armdyn.sweeps.elsewhere")
    monkeypatch.setattr(armdyn.sweeps.designs, "__module__", "armdyn.elsewhere")
    assert (described(Moments()), described(armdyn.sweeps.designs)) == before
    monkeypatch.setattr(Moments, "__module__", "mine.reductions")
    assert described(Moments()) != before[0]


def test_fingerprints_tell_studies_apart():
    def a(x):
        return x + 1

    def b(x):
        return x + 2

    k = 1
    first = lambda x: x + k  # noqa: E731
    k = 2
    assert digest(a) != digest(b)
    assert digest(first) == digest(first)
    assert digest(Torques()) != digest(Torques("x"))
    assert digest(np.arange(3.0)) != digest(np.arange(3))
    assert digest(pickle.loads(pickle.dumps(samples()))) == digest(samples())
    with pytest.raises(InputError, match="cannot be fingerprinted"):
        digest(object())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"samples": 0}, "at least one sample"),
        ({"samples": None}, "samples must be"),
        ({"compute": 3}, "compute must be a function"),
        ({"chunk": 0}, "chunk must be"),
        ({"threads": 0}, "threads must be"),
        ({"compute": lambda arm, samples: 1}, "a dict of arrays"),
        ({"compute": lambda arm, samples: {"x": np.zeros(7)}}, r"expected \(1, ...\)"),
        ({"reduce": {"y": [Extremes()]}}, "selects no variable; available: x"),
        ({"arm": "ur10"}, "takes an Arm"),
    ],
)
def test_wrong_input_is_named(wrong, says):
    given = {"arm": arm(), "compute": lambda arm, samples: {"x": np.zeros(len(samples))}, "samples": 10} | wrong
    with pytest.raises(InputError, match=says):
        sweep(**given)


def test_capability_is_where_the_motors_stop():
    found = sweep(arm(), Capability(), 64)
    for k in (0, 5, 63):
        q, mass = found.q.values[k], float(found.payload[k])
        limits = arm().effort_limits
        held = np.abs(arm().with_payload(mass).kernel("gravity_load", "recursive", backend="python")(q))
        assert (held <= limits * (1 + 1e-9)).all()
        if mass > 0:
            assert held[int(found.limiting_joint[k]) - 1] == pytest.approx(limits[int(found.limiting_joint[k]) - 1])
        J, g = np.asarray(arm().jacobian(q))[:3], np.asarray(arm().gravity_load(q))
        turns = np.linspace(0, 2 * np.pi, 720)
        forces = float(found.force[k]) * np.stack([np.cos(turns), np.sin(turns), 0 * turns])
        asked = np.abs(g[:, None] + J.T @ forces)
        assert (asked <= limits[:, None] * (1 + 1e-9)).all()
        assert (asked / limits[:, None]).max() > 0.999 or mass == 0


def test_a_data_set_is_made_of_the_arms_own_torques():
    found = sweep(arm(), DataSet(seed=4), 50, chunk=20)
    state = [found[name].values for name in ("q", "qd", "qdd")]
    assert np.array_equal(found.tau.values, arm().inverse_dynamics(*state))
    assert (np.abs(found.qd.values) <= arm().velocity_limits).all()
    varied = sweep(arm(), DataSet(seed=4, friction=True), samples(50), chunk=20)
    one = samples(50).arm(31)
    state = [varied[name].values[31] for name in ("q", "qd", "qdd")]
    expected = one.kernel("inverse_dynamics", "newton_euler", backend="python")(*state)
    np.testing.assert_allclose(varied.tau.values[31], expected, rtol=1e-12)


def test_robustness_is_worse_for_a_heavier_load():
    study = Robustness((0.0, 0.5), (0.6, 0.2), duration=0.3, settle=0.1, kp=400.0, kd=40.0, trajectories=True)
    load = Uncertain(arm(), payload_mass=Uniform(0, 2), seed=1).sample(12)
    found = sweep(arm(), study, load, chunk=5)
    order = np.argsort(load.values[:, 0])
    assert (np.diff(found.tool_error.values[order]) > 0).all()
    assert found.q.dims == ("sample", "time", "joint")
    np.testing.assert_array_equal(found.final_error, np.abs(found.q.values[:, -1] - study.end))
    assert (found.tracking_error.values >= found.final_error.values).all()
    assert float(found.time[-1]) == pytest.approx(0.4)


def test_a_design_is_the_arm_it_describes():
    rows = designs([[1.0, 1.3], [1.0]], [[1.0, 1.5], [0.7]])
    found = sweep(arm(), Design(count=64, payload=1.0), rows, chunk=2)
    assert rows.shape == (4, 4)
    longer = armdyn.sweeps.ready.stretched(arm(), (1.3, 1.0))
    assert float(found.reach[3]) > float(found.reach[0])
    natural = [link.natural for link in longer.links]
    heavy = longer.with_links(
        tuple(
            type(longer.links[0]).from_natural(tuple(f * x for x in row))
            for f, row in zip((1.5, 0.7), natural, strict=True)
        )
    ).with_payload(1.0)
    q = armdyn.sweeps.postures(arm(), 0, 0, 64)
    load = np.abs(heavy.kernel("gravity_load", "recursive", backend="python")(q)).max(axis=0)
    np.testing.assert_allclose(found.gravity_load.values[3], load, rtol=1e-9)
    still, qdd = np.zeros_like(q), armdyn.sweeps.postures(arm(), 1, 0, 64)
    qdd = 5.0 * np.clip(qdd / np.clip(arm().limits, -np.pi, np.pi)[:, 1], -1, 1)
    torque = np.abs(heavy.kernel("inverse_dynamics", "newton_euler", backend="python")(q, still, qdd)).max(axis=0)
    np.testing.assert_allclose(found.torque.values[3], torque, rtol=1e-9)
    reach = np.linalg.norm(np.asarray(heavy.kernel("pose", backend="python")(q))[:, :3, 3], axis=1).max()
    assert float(found.reach[3]) == pytest.approx(reach, rel=1e-12)
    assert float(found.mass[3]) == pytest.approx(heavy.mass - 1.0)


def test_all_geometries_of_a_design_share_their_programs(monkeypatch):
    compiled, compile_one = [], armdyn.codegen.compile.load_or_compile
    monkeypatch.setattr(
        "armdyn.simulation.programs.load_or_compile", lambda *a, **k: compiled.append(1) or compile_one(*a, **k)
    )
    armdyn.simulation.programs.plant_program.cache_clear()
    Design(count=8)(arm(), designs([[1.0, 1.2, 1.4], [1.0, 1.1]], [[1.0], [1.0]]))
    assert len(compiled) == 2, "one program of the gravity load and one of the torques"


def test_a_design_with_an_impossible_payload_is_refused():
    with pytest.raises(InputError, match="negative mass -1 kg"):
        Design(payload=-1.0)


def test_a_bootstrap_scatters_as_the_estimate_says():
    """White noise on the torques: the spread of the fits is the estimate's own standard deviation, and in place."""
    plain, rng, rate = arm(), np.random.default_rng(0), 100.0
    t = np.arange(3000) / rate
    w = 2 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])
    amplitude, phase = rng.uniform(0.2, 0.5, (4, 2)), rng.uniform(0, 6, (4, 2))
    q = sum(a * np.sin(f * t[:, None] + p) for a, f, p in zip(amplitude, w, phase, strict=True))
    qd = sum(a * f * np.cos(f * t[:, None] + p) for a, f, p in zip(amplitude, w, phase, strict=True))
    qdd = sum(-a * f * f * np.sin(f * t[:, None] + p) for a, f, p in zip(amplitude, w, phase, strict=True))
    tau = plain.inverse_dynamics(q, qd, qdd) + 0.5 * rng.standard_normal(q.shape)
    log = armdyn.Log.of(t, q, tau)
    estimate = armdyn.identify(plain, log, estimator="weighted", friction="none", rotor=False, offset=False)
    found = sweep(plain, Bootstrap.of(estimate, log, seed=2), 200, reduce=[Moments()], chunk=50)
    assert np.abs((found.values_mean.values - estimate.values) / estimate.deviations).max() < 1.0
    ratio = found.values_sd.values / estimate.deviations
    assert ((ratio > 0.6) & (ratio < 1.6)).all()
    varied = Uncertain(plain, covariance=estimate).sample(2000).parameters
    np.testing.assert_allclose(varied.std(axis=0), estimate.deviations, rtol=0.15)


STUDY = """
study = "robustness"
arm = "planar.toml"
samples = 40
seed = 2
chunk = 16
[uncertain]
payload_mass = { uniform = [0.0, 2.0] }
link_masses = { shoulder = { normal = [1.0, 0.05] } }
[robustness]
start = [0.0, 0.5]
end = [0.6, 0.2]
duration = 0.3
[reduce]
quantiles = [0.5, 0.95]
exceeds = { bound = 0.01 }
"""


def test_a_study_file_is_the_study(tmp_path):
    planar().save(tmp_path / "planar.toml")
    (tmp_path / "study.toml").write_text(STUDY)
    asked = read_study(tmp_path / "study.toml")
    assert isinstance(asked.compute, Robustness)
    assert len(asked.samples) == 40
    shown = CliRunner().invoke(app, ["sweep", str(tmp_path / "study.toml"), "--json", "--threads", "2"])
    assert shown.exit_code == 0, shown.output
    values = json.loads(shown.stdout)["values"]
    expected = sweep(asked.arm, asked.compute, asked.samples, asked.reduce, chunk=16)
    assert values["tool_error_quantile"] == expected.tool_error_quantile.values.tolist()
    printed = CliRunner().invoke(app, ["sweep", str(tmp_path / "study.toml")])
    assert "tracking_error_exceeds_probability" in printed.stdout


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"robustness"', '"strength"'), "unknown study 'strength'; available: robustness, capability"),
        (("samples = 40", "samples = 0"), "samples must be a whole number"),
        (("payload_mass", "payload_weight"), "unknown uncertain number 'payload_weight'"),
        (("uniform = [0.0, 2.0]", "uniform = [1.0]"), "uniform takes two numbers"),
        (("duration = 0.3", "time = 0.3"), "unknown setting of robustness 'time'"),
        (("exceeds = { bound = 0.01 }", "median = true"), "unknown reduction 'median'"),
        (("chunk = 16", "size = 16"), "unknown key 'size'"),
        (("[uncertain]", "[uncertain"), "study.toml"),
    ],
)
def test_a_wrong_study_file_says_what_is_wrong(tmp_path, change, says):
    planar().save(tmp_path / "planar.toml")
    (tmp_path / "study.toml").write_text(STUDY.replace(*change))
    with pytest.raises(FileError, match=says):
        read_study(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(STUDY.replace("samples = 40", "samples = 1"))
    assert len(read_study(tmp_path / "study.toml").samples) == 1


def test_a_missing_study_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.toml: cannot be read \(No such file or directory\)"):
        read_study(tmp_path / "nothing.toml")
