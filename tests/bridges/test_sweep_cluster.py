"""Studies on a Dask cluster: the bits of a local run, whoever is killed, whoever else works on the store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn import Normal, Uncertain, Uniform
from armdyn.errors import ComputationError, FileError
from armdyn.sweeps import Exceeds, Extremes, Histogram, Moments, Quantiles, Robustness, sweep
from armdyn.sweeps.stores import store_at

distributed = pytest.importorskip("distributed")
xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")

# Dask's own sockets and loops are closed by its own rules.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:.*unclosed.*", "ignore::DeprecationWarning")
CHUNKS = 24
SLOW = 0.15  # seconds a chunk takes at least, so that something is killed in the middle


@dataclass(frozen=True)
class Slowly:
    """Torques after a while; every chunk leaves a line in `calls`. While `calls`.half exists, half of them hang."""

    calls: str

    def __call__(self, arm, samples):
        if len(samples) > 1:  # a single sample is how a sweep learns the layout
            hangs = samples.first >= 10 * CHUNKS // 2 and Path(f"{self.calls}.half").exists()
            time.sleep(3600.0 if hangs else SLOW)
        with open(self.calls, "a") as lines:
            lines.write(f"{samples.first} {len(samples)} {os.getpid()}\n")
        return {"tau": samples.evaluate("gravity_load", [0.3, -1.0, 0.5, 0.2, 0.1, 0.0]).values}


def arm():
    return armdyn.load("ur10")


def samples(count=CHUNKS * 10):
    return Uncertain(arm(), payload_mass=Uniform(0, 5), link_masses=Normal(1, 0.05), seed=11).sample(count)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made:
        yield made


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as made:
        made.wait_for_workers(2)
        yield made


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.split()[1] != "1"]


def motion():
    start = (0.0, -1.2, 1.0, 0.0, 0.5, 0.0)
    return Robustness(start, (0.4, -1.0, 1.2, 0.2, 0.5, 0.2), duration=0.2, settle=0.0, trajectories=True)


def test_a_cluster_gives_the_bits_of_a_local_run(client, tmp_path):
    local = sweep(arm(), motion(), samples(100), chunk=16, threads=2)
    assert sweep(arm(), motion(), samples(100), chunk=16, client=client).equals(local)
    stored = sweep(arm(), motion(), samples(100), chunk=16, client=client, out=tmp_path / "a.zarr")
    assert stored.load().equals(local)
    assert local.q.dims == ("sample", "time", "joint")
    again = xarray.open_zarr(tmp_path / "a.zarr").load()
    assert again.equals(local)
    assert again.attrs["seed"] == 11


def test_reductions_of_workers_are_those_of_threads(client, tmp_path):
    reduce = [Quantiles((0.05, 0.5, 0.95)), Extremes(), Moments(), Histogram(0, 200, 20), Exceeds(100.0)]
    local = sweep(arm(), motion(), samples(90), {"largest_torque": reduce}, chunk=16, threads=1)
    there = sweep(arm(), motion(), samples(90), {"largest_torque": reduce}, tmp_path / "r.zarr", client, chunk=16)
    assert there.equals(local)
    assert xarray.open_zarr(tmp_path / "r.zarr").load().equals(local)


def test_a_function_of_a_script_travels(client):
    """What is defined here and nowhere on the workers' paths goes with its code."""
    shift = 2.0
    found = sweep(arm(), lambda arm, numbers: {"x": np.array(numbers) * shift}, 50, chunk=20, client=client)
    assert np.array_equal(found.x.values, 2.0 * np.arange(50))


def test_kernels_compile_once_per_worker(client):
    sweep(arm(), motion(), samples(64), chunk=8, client=client)
    counts = client.run(lambda: __import__("armdyn.sweeps.study", fromlist=["x"]).unpacked.cache_info().misses)
    chunks = client.run(lambda: __import__("armdyn.sweeps.study", fromlist=["x"]).unpacked.cache_info().hits)
    assert all(count <= 8 for count in counts.values())
    assert sum(chunks.values()) > 0


def test_a_killed_worker_costs_nothing_but_its_chunk(client, tmp_path):
    calls = tmp_path / "calls"
    calls.touch()
    victim = {}

    def kill(done, total, text):
        if done >= 5 and not victim:
            victim["pid"] = next(iter(client.run(os.getpid).values()))
            os.kill(victim["pid"], signal.SIGKILL)

    found = sweep(arm(), Slowly(str(calls)), samples(), out=tmp_path / "k.zarr", client=client, chunk=10, progress=kill)
    assert victim
    local = samples().evaluate("gravity_load", [0.3, -1.0, 0.5, 0.2, 0.1, 0.0]).values
    assert np.array_equal(found.tau.values, local)
    assert len(lines(calls)) <= CHUNKS + 6  # at most what the killed worker had at hand and ahead
    client.wait_for_workers(2)


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from test_sweep_cluster import Slowly, arm, samples, sweep
if __name__ == "__main__":
    sweep(arm(), Slowly({calls!r}), samples(), out={out!r}, chunk=10, threads=2)
"""


def script(tmp_path, name):
    text = SCRIPT.format(here=str(Path(__file__).parent), calls=str(tmp_path / name), out=str(tmp_path / "s.zarr"))
    (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / name).touch()
    return subprocess.Popen([sys.executable, str(tmp_path / f"{name}.py")], env=os.environ.copy())


def waited(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_a_killed_client_resumes(client, tmp_path):
    """kill -9 of the client in the middle; another goes on, on a cluster this time, and computes the rest only."""
    half = tmp_path / "first.half"
    half.touch()
    first = script(tmp_path, "first")
    store = store_at(tmp_path / "s.zarr")
    waited(lambda: len(store.done()) >= 5)
    first.send_signal(signal.SIGKILL)
    first.wait()
    half.unlink()
    kept = store.done()
    assert 5 <= len(kept) < CHUNKS
    calls = tmp_path / "first"
    before = len(lines(calls))
    compute = Slowly(str(calls))
    found = sweep(arm(), compute, samples(), out=tmp_path / "s.zarr", client=client, chunk=10)
    assert len(lines(calls)) - before == CHUNKS - len(kept)
    local = samples().evaluate("gravity_load", [0.3, -1.0, 0.5, 0.2, 0.1, 0.0]).values
    assert np.array_equal(found.tau.values, local)


def test_two_clients_share_one_store(cluster, tmp_path):
    calls = tmp_path / "calls"
    calls.touch()
    found, errors = {}, []

    def work(name):
        try:
            with distributed.Client(cluster, set_as_default=False) as own:
                found[name] = sweep(
                    arm(), Slowly(str(calls)), samples(), out=tmp_path / "two.zarr", client=own, chunk=10
                ).load()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    threads[0].start()
    waited(lambda: errors or len(store_at(tmp_path / "two.zarr").done()) >= 4)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert not errors
    local = samples().evaluate("gravity_load", [0.3, -1.0, 0.5, 0.2, 0.1, 0.0]).values
    for name in ("a", "b"):
        assert np.array_equal(found[name].tau.values, local)
    assert len(lines(calls)) <= CHUNKS + CHUNKS // 2  # both happen to work on the same chunk now and then


def test_a_failing_chunk_ends_the_sweep_and_what_is_stored_stays(client, tmp_path):
    def breaks(arm, numbers):
        if numbers.start == 80:
            raise OSError(28, "No space left on device")
        return {"x": np.array(numbers, dtype=float)}

    with pytest.raises(ComputationError, match="No space left"):
        sweep(arm(), breaks, 200, out=tmp_path / "f.zarr", client=client, chunk=10)
    assert store_at(tmp_path / "f.zarr").done()
    assert 8 not in store_at(tmp_path / "f.zarr").done()


def test_an_address_of_fsspec_is_a_store():
    out = "memory://armdyn/study.zarr"
    local = sweep(arm(), motion(), samples(20), chunk=8, threads=1)
    assert sweep(arm(), motion(), samples(20), out=out, chunk=8, threads=2).load().equals(local)
    with pytest.raises(FileError, match="belongs to another study"):
        sweep(arm(), motion(), samples(21), out=out, chunk=8)


def test_a_folder_of_something_else_is_no_store(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("mine")
    with pytest.raises(FileError, match="not empty and holds no study"):
        sweep(arm(), Slowly(str(tmp_path / "calls")), samples(), out=tmp_path / "letters")
    assert (tmp_path / "letters" / "dear.txt").read_text() == "mine"
