"""The cache on disk: what is in it is used only if it is whole, ours and made by this source."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import os
import re
import stat
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

import armdyn
from armdyn.codegen import cache
from armdyn.codegen import compile as compiler
from armdyn.kernels import ahead

ARM = armdyn.generic_arm("RR", seed=5)
SAME_SOURCE = "from armdyn.codegen import cache; cache.source = lambda: 'this source'; from "
Q = np.array([0.3, -0.4])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv("ARMDYN_CACHE", str(place))
    monkeypatch.setattr(cache, "source", lambda: "this source")
    return place


@pytest.fixture
def compilations(monkeypatch):
    """How often something was compiled."""
    done = []
    real = compiler.object_code

    def counted(program, *options, **named):
        done.append(program.name)
        return real(program, *options, **named)

    monkeypatch.setattr(compiler, "object_code", counted)
    return done


def fresh(monkeypatch, quantity="bias"):
    """The quantity as a new process would compute it."""
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    kernel = ARM.kernel(quantity, method=armdyn.methods(quantity)[0])
    return kernel(*[Q] * len(kernel.assembly.inputs))


def entries(place):
    return sorted(place.glob("*" + cache.SUFFIX))


def test_the_second_process_compiles_nothing(folder, compilations, monkeypatch):
    first = fresh(monkeypatch)
    second = fresh(monkeypatch)
    assert len(compilations) == 1
    assert len(entries(folder)) == 1
    np.testing.assert_array_equal(first, second)


def test_the_same_thing_asked_twice_is_compiled_once(folder, compilations):
    a, b = ARM.kernel("gravity_load"), armdyn.generic_arm("RR", seed=5).kernel("gravity_load")
    np.testing.assert_array_equal(a(Q), b(Q))
    assert len(compilations) <= 1
    assert a.compiled is b.compiled
    assert len(compilations) <= 2  # the second time for batches


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("quantity", ["inertia_matrix", "forward_dynamics", "kinetic_energy"])
def test_code_for_batches_is_compiled_when_a_batch_comes(folder, compilations, monkeypatch, quantity, dtype):
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    kernel = ARM.kernel(quantity, dtype=dtype)
    state = [Q.astype(dtype)] * len(kernel.assembly.inputs)
    alone = kernel(*state)
    assert kernel._compiled is None
    assert len(compilations) == 1
    for other in ([x.tolist() for x in state], [np.repeat(x, 2)[::2] for x in state], [x.astype(">f8") for x in state]):
        np.testing.assert_array_equal(kernel(*other), ARM.kernel(quantity, dtype=dtype, backend="llvm")(*other))
    assert len(compilations) == 1
    batch = kernel(*[np.stack([x] * 9) for x in state])
    assert kernel._compiled is not None
    assert len(compilations) == 2
    assert {row.tobytes() for row in batch} == {alone.tobytes(), kernel(*state).tobytes()}
    assert alone.dtype == batch.dtype == dtype

    later = ARM.kernel(quantity, dtype=dtype)  # finds the code for batches, which takes single calls too
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    assert later(*state).tobytes() == alone.tobytes()
    assert len(compilations) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.1], "expects q of shape"),
        ([[0.1, 0.2], [0.1]], "not an array of numbers"),
        (np.array([0.1, 0.2], dtype=np.longdouble), "float64 is the widest"),
        ([0.1, 0.2j], "real numbers"),
        (["a", "b"], "real numbers"),
    ],
)
def test_a_first_call_refuses_what_any_call_refuses(folder, given, said):
    with pytest.raises(armdyn.errors.InputError, match=said):
        ARM.kernel("inertia_matrix")(given)


def test_other_arms_quantities_methods_options_and_sources_have_other_keys(folder, monkeypatch):
    asked = [
        (ARM.chain, "bias", "newton_euler"),
        (ARM.with_gravity((0, 0, -1.6)).chain, "bias", "newton_euler"),
        (ARM.chain, "gravity_load", "newton_euler"),
        (ARM.chain, "bias", "lin_1991"),
        (ARM.chain, "bias", "newton_euler", True),
    ]
    names = {cache.key(*one) for one in asked}
    monkeypatch.setattr(cache, "source", lambda: "another source")
    names.add(cache.key(*asked[0]))
    assert len(names) == len(asked) + 1


def test_every_number_of_an_arm_is_in_its_key(folder):
    """Also those that a short `repr` leaves out."""

    def changed(thing):
        """The thing with one number changed, for every number in it."""
        if dataclasses.is_dataclass(thing):
            for field in dataclasses.fields(thing):
                for other in changed(getattr(thing, field.name)):
                    twin = copy.copy(thing)
                    object.__setattr__(twin, field.name, other)
                    yield twin
        elif isinstance(thing, tuple):
            for k, item in enumerate(thing):
                yield from ((*thing[:k], other, *thing[k + 1 :]) for other in changed(item))
        elif isinstance(thing, Fraction | int | float) and not isinstance(thing, bool):
            yield thing + 1

    twins = list(changed(ARM.chain))
    assert len(twins) > 60
    assert len({cache.key(chain, "bias") for chain in (ARM.chain, *twins)}) == len(twins) + 1


def test_no_home_no_cache(monkeypatch):
    monkeypatch.delenv("ARMDYN_CACHE", raising=False)
    monkeypatch.setattr(cache, "_default", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache.folder() is None


def spoil(path, kind):
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[:-100])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "one bit":
        path.write_bytes(content[:-50] + bytes([content[-50] ^ 4]) + content[-49:])
    elif kind == "text":
        path.write_bytes(b"not a kernel at all\n" * 50)
    elif kind == "older format":
        path.write_bytes(b"armdyn kernel 0\n" + content[16:])
    elif kind == "writable by others":
        path.chmod(0o666)
    elif kind == "a link":
        path.rename(path.with_suffix(".moved"))
        path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    "kind", ["truncated", "empty", "one bit", "text", "older format", "writable by others", "a link"]
)
def test_a_bad_entry_is_made_anew(folder, compilations, monkeypatch, kind):
    expected = fresh(monkeypatch)
    (path,) = entries(folder)
    good = path.read_bytes()
    spoil(path, kind)
    np.testing.assert_array_equal(fresh(monkeypatch), expected)
    assert len(compilations) == 2
    assert path.read_bytes() == good
    assert not path.is_symlink()
    np.testing.assert_array_equal(fresh(monkeypatch), expected)
    assert len(compilations) == 2


def test_an_entry_under_another_name_is_not_used(folder, compilations, monkeypatch):
    fresh(monkeypatch, "gravity_load")
    (other,) = entries(folder)
    fresh(monkeypatch)
    (mine,) = (path for path in entries(folder) if path != other)
    mine.write_bytes(other.read_bytes())
    fresh(monkeypatch)
    assert len(compilations) == 3


@pytest.mark.skipif(os.name == "nt", reason="file modes say nothing on Windows")
def test_somebody_elses_files_and_folders_are_not_used(folder, compilations, monkeypatch):
    fresh(monkeypatch)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert cache.folder() is None
    fresh(monkeypatch)
    assert len(compilations) == 2


@pytest.mark.skipif(os.name == "nt", reason="file modes say nothing on Windows")
def test_the_folder_is_private(folder, monkeypatch):
    fresh(monkeypatch)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600
    folder.chmod(0o777)
    assert cache.folder() is None


def test_off_keeps_nothing(folder, compilations, monkeypatch):
    monkeypatch.setenv("ARMDYN_CACHE", "off")
    fresh(monkeypatch)
    fresh(monkeypatch)
    assert len(compilations) == 2
    assert not folder.exists()
    assert "no cache" in str(cache.show())
    assert cache.clear().entries == 0


@pytest.mark.parametrize("place", ["a file", "beneath a file"])
def test_a_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch, place):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ARMDYN_CACHE", str(blocked if place == "a file" else blocked / "kernels"))
    fresh(monkeypatch)
    assert cache.get(cache.key("x")) is None


def test_a_changed_source_is_not_trusted(folder, compilations, monkeypatch):
    monkeypatch.setattr(cache, "source", lambda: None)
    fresh(monkeypatch)
    fresh(monkeypatch)
    assert len(compilations) == 2
    assert not entries(folder)


def test_source_that_was_read_before_it_was_written_has_no_fingerprint(monkeypatch):
    cache.source.cache_clear()
    monkeypatch.setattr(cache, "_IMPORTED", 0.0)
    assert cache.source() is None
    cache.source.cache_clear()
    monkeypatch.setattr(cache, "_IMPORTED", float("inf"))
    assert len(cache.source()) == 64
    cache.source.cache_clear()


def test_the_source_of_everything_that_is_cached_is_in_the_key():
    package = Path(armdyn.__file__).parent
    callers = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if re.search(r"load_or_compile\(|cache\.key\(", path.read_text(encoding="utf-8"))
    }
    assert "uncertainty" in callers
    assert callers <= set(cache.DEPENDENCIES)
    assert all((package / part).is_dir() for part in cache.DEPENDENCIES)


def test_a_package_that_is_not_found_is_not_taken_for_an_empty_one(monkeypatch, tmp_path):
    cache.source.cache_clear()
    monkeypatch.setattr(cache.errors, "__file__", str(tmp_path / "armdyn" / "errors.py"))
    assert cache.source() is None  # nothing is kept: a program that was frozen without the source
    cache.source.cache_clear()
    (tmp_path / "armdyn" / "graph").mkdir(parents=True)
    (tmp_path / "armdyn" / "graph" / "node.py").write_text("")
    with pytest.raises(AssertionError, match="only 1 files of armdyn's source"):
        cache.source()
    cache.source.cache_clear()


def test_the_size_is_bounded_and_the_oldest_go_first(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    names = [cache.key(k) for k in range(12)]
    for age, name in enumerate(names[:9]):
        cache.put(name, b"x" * 1000)
        os.utime(folder / (name + cache.SUFFIX), (1e9 + age, 1e9 + age))
    assert cache.get(names[0]) is not None  # used just now: no longer the oldest
    cache.put(names[9], b"x" * 1000)
    assert cache.show().size <= 10_000
    assert cache.get(names[0]) is not None
    assert cache.get(names[1]) is None
    assert cache.get(names[9]) == b"x" * 1000


def test_what_was_used_last_stays_in_whatever_order_the_file_system_lists(folder, monkeypatch):
    names = [cache.key(k) for k in range(12)]
    ages = {name: 1e9 + (5 * k) % 12 for k, name in enumerate(names)}  # neither in nor against the order of writing
    for name in names:
        cache.put(name, b"x" * 1000)
    for name, age in ages.items():
        os.utime(folder / (name + cache.SUFFIX), (age, age))
    real = cache._entries
    monkeypatch.setattr(cache, "_entries", lambda place: sorted(real(place), key=lambda entry: str(entry[2])))
    size = cache.show().size // 12
    monkeypatch.setattr(cache, "LIMIT", 10 * size)
    cache._shrink(folder)
    kept = {path.name.removesuffix(cache.SUFFIX) for path in entries(folder)}
    assert kept == set(sorted(names, key=ages.__getitem__)[-8:])


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be counted on this system")
def test_a_folder_in_place_of_an_entry_leaks_nothing_and_is_replaced(folder):
    name = cache.key("x")
    cache.put(cache.key("another"), b"makes the folder")
    (folder / (name + cache.SUFFIX)).mkdir()
    cache.get(name)
    before = len(os.listdir("/proc/self/fd"))
    assert [cache.get(name) for _ in range(20)] == [None] * 20
    assert len(os.listdir("/proc/self/fd")) == before
    cache.put(name, b"content")
    assert cache.get(name) == b"content"


def test_a_huge_sparse_file_in_place_of_an_entry_is_not_read(folder):
    name = cache.key("x")
    cache.put(name, b"content")
    os.truncate(folder / (name + cache.SUFFIX), 40 * 2**30)
    assert cache.get(name) is None
    cache.put(name, b"content")
    assert cache.get(name) == b"content"


def test_the_folder_is_not_listed_at_every_write(folder, monkeypatch):
    """At the first write, and after every sixteenth of the limit; another process's entries are then counted."""
    listed, real = [], cache._entries
    monkeypatch.setattr(cache, "_entries", lambda place: listed.append(place) or real(place))
    monkeypatch.setattr(cache, "LIMIT", 160_000)
    for k in range(9):
        cache.put(cache.key(k), b"x" * 1000)
    assert len(listed) == 1
    others = [folder / (cache.key("other", k) + cache.SUFFIX) for k in range(160)]
    for path in others:
        path.write_bytes(b"x" * 1000)
    for k in range(9, 12):
        cache.put(cache.key(k), b"x" * 1000)
    assert len(listed) == 2
    assert cache.show().size <= 160_000


def test_show_and_clear(folder):
    assert cache.show().entries == 0
    cache.put(cache.key(1), b"a")
    cache.put(cache.key(2), b"b" * 100)
    summary = cache.show()
    assert (summary.entries, summary.folder) == (2, folder)
    assert summary.size > 100
    assert "2 kernels" in str(summary)
    assert cache.clear() == summary
    assert cache.show().entries == 0


def test_short_texts_are_kept_too(folder):
    found = []

    def find():
        found.append(1)
        return "lin_fang_1"

    assert cache.get_or_compute(cache.key("auto"), find) == "lin_fang_1"
    assert cache.get_or_compute(cache.key("auto"), find) == "lin_fang_1"
    assert len(found) == 1
    assert cache.get_or_compute(None, find) == "lin_fang_1"
    assert len(found) == 2


SCRIPT = """
import sys
import numpy as np
import armdyn
from armdyn.codegen import cache
cache.source = lambda: "this source"
arm = armdyn.generic_arm("RR", seed=5)
print(arm.kernel("bias", "newton_euler")(np.array([0.3, -0.4]), np.array([0.3, -0.4])).tolist())
"""


def test_processes_may_race(folder):
    running = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    results = [process.communicate() for process in running]
    assert {error for _, error in results} == {""}
    assert len({output for output, _ in results}) == 1
    assert len(entries(folder)) == 1
    assert not list(folder.glob(".writing-*"))


def test_threads_may_race(folder, compilations, monkeypatch):
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    results = []
    threads = [threading.Thread(target=lambda: results.append(ARM.kernel("bias", "lin_1991")(Q, Q))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compilations) == 1
    assert len(results) == 6
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def computed(arm):
    """What a worker process makes of an arm it was sent."""
    return arm.bias(Q, Q).tolist(), arm.kernel("gravity_load")(np.stack([Q] * 6000), threads=2)[0].tolist()


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_worker_processes_get_the_same_bits(folder, start):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {start}")
    expected = computed(ARM)
    with multiprocessing.get_context(start).Pool(2) as pool:
        assert pool.map(computed, [ARM] * 3) == [expected] * 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders on this system")
def test_a_pipe_in_place_of_an_entry_does_not_block(folder):
    name = cache.key("x")
    cache.put(name, b"content")
    entry = folder / (name + cache.SUFFIX)
    entry.unlink()
    os.mkfifo(entry, 0o600)
    found = []
    thread = threading.Thread(target=lambda: found.append(cache.get(name)), daemon=True)
    thread.start()
    thread.join(5)
    assert found == [None]
    cache.put(name, b"content")  # takes its place
    assert cache.get(name) == b"content"


def test_what_a_killed_process_left_is_removed(folder, monkeypatch):
    cache.put(cache.key(1), b"a")
    old, new = (folder / (cache.TEMPORARY + name) for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    monkeypatch.setattr(cache, "_known", {})  # another process
    cache.put(cache.key(2), b"b")
    assert not old.exists()
    assert new.exists()  # somebody may be writing it
    assert cache.get(cache.key(1)) == b"a"


def test_kernels_are_compiled_ahead_by_other_processes(folder, compilations, monkeypatch):
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    monkeypatch.setattr(ahead, "_WORKER", ahead._WORKER.replace("from ", SAME_SOURCE))
    said = []
    arm = armdyn.generic_arm("RR", seed=5).compile(
        "bias", "pose", "jacobian", workers=2, progress=lambda *x: said.append(x)
    )
    assert [done for done, _, _ in said] == [0, 1, 2, 3]
    assert said[-1][1] == 3
    assert sorted(text for _, _, text in said[1:]) == ["compiled bias", "compiled jacobian", "compiled pose"]
    assert not compilations  # here: the workers compiled them
    np.testing.assert_array_equal(arm.bias(Q, Q), ARM.bias(Q, Q))
    monkeypatch.setattr(ahead, "_by_workers", lambda *_: pytest.fail("workers were started for nothing"))
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    armdyn.generic_arm("RR", seed=5).compile("bias", "pose", "jacobian")


@pytest.mark.parametrize("executable", ["/nowhere/python", "/usr/bin/false"])
def test_without_workers_kernels_are_compiled_ahead_here(folder, compilations, monkeypatch, executable):
    monkeypatch.setattr(compiler, "_LOADED", WeakValueDictionary())
    monkeypatch.setattr("sys.executable", executable)
    monkeypatch.setattr(ahead, "interpreter", lambda: True)
    said = []
    armdyn.generic_arm("RR", seed=6).compile("pose", "jacobian", progress=lambda *x: said.append(x))
    assert len(compilations) == 2
    assert [done for done, _, _ in said] == [0, 1, 2]
    with pytest.raises(armdyn.errors.InputError, match="unknown quantity 'nonsense'"):
        ARM.compile("nonsense")
    with pytest.raises(armdyn.errors.InputError, match="workers must be a positive number"):
        ARM.compile("pose", workers=0)
