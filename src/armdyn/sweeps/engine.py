"""sweep: run a study in chunks, on local threads or a Dask cluster, and return labelled arrays."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Unpack

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import ArmdynError, ComputationError, FileError, InputError
from armdyn.identification.threads import one_thread
from armdyn.kernels.kernel import checked as checked_threads
from armdyn.options import Execution, SweepKeywords, flat_keywords
from armdyn.processes import cores
from armdyn.sweeps.reductions import LabelledArray, Part, Variables, dataset, needed, require
from armdyn.sweeps.stores import Store, store_at
from armdyn.sweeps.study import Compute, Study, packed, unpacked

Result = tuple[Variables | None, dict[str, np.ndarray] | None]
PREFETCH = 2  # chunks submitted per thread of a cluster, so that none is idle
POLL_INTERVAL = 1.0  # seconds between queries of the number of threads of the cluster
RETRIES = 2  # of a chunk after an error that may be temporary (a store that did not answer)


def compute_chunk(study: Study, store: Store | None, index: int) -> Result:
    """Compute, reduce, store and mark one chunk; returns the result if there is no store."""
    if store is not None and store.has(index):  # another client was faster
        return None, None
    first, stop = study.bounds(index)
    variables = study.run(first, stop)
    if study.reduce is not None:
        samples = study.parts(variables, first)
        if store is None:
            return None, samples
        store.mark(index, samples)
        return None, None
    if store is None:
        return variables, None
    store.put(index, first, variables)
    store.mark(index, {})
    return None, None


def compute_packed(content: bytes, store: Store | None, index: int) -> Result:
    """`compute_chunk` on one thread of a cluster's worker."""
    with one_thread():
        return compute_chunk(unpacked(content), store, index)


def on_threads(study: Study, store: Store | None, order: Iterator[int], threads: int) -> Iterator[tuple[int, Any]]:
    """(index, result or error) of every chunk, in order of completion."""
    running: dict[Future[Result], int] = {}
    with one_thread(), ThreadPoolExecutor(threads, thread_name_prefix="armdyn-sweep") as pool:
        try:
            for index in order:
                running[pool.submit(compute_chunk, study, store, index)] = index
                if len(running) >= threads + 1:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        finally:
            for future in running:
                future.cancel()


def _finished(running: dict[Future[Result], int]) -> Iterator[tuple[int, Any]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.exception() or future.result()


def on_cluster(
    client: Any, content: bytes, store: Store | None, order: Iterator[int], say: Callable[[str], None]
) -> Iterator[tuple[int, Any]]:
    """The same on a Dask cluster, with only a few chunks submitted per thread, so that two clients share the work."""
    distributed = needed("distributed")
    carried = client.scatter(content, broadcast=True, hash=False)
    running: dict[Any, int] = {}
    flow = distributed.as_completed(loop=client.loop)
    threads = _Threads(client, say)

    def start() -> None:
        for _, index in zip(range(threads.room(len(running))), order, strict=False):
            future = client.submit(compute_packed, carried, store, index, pure=False, retries=RETRIES)
            running[future] = index
            flow.add(future)

    try:
        start()
        for future in flow:
            index = running.pop(future)
            error = future.exception()
            result = error if error is not None else future.result()
            future.release()
            start()
            yield index, result
    finally:
        client.cancel(list(running))


class _Threads:
    """The number of threads of the cluster, polled only now and then because a query costs as much as a task."""

    def __init__(self, client: Any, say: Callable[[str], None]) -> None:
        self.client, self.say = client, say
        self.asked, self.count = -POLL_INTERVAL, 0

    def room(self, running: int) -> int:
        """The number of chunks to submit now."""
        if time.monotonic() - self.asked >= POLL_INTERVAL:
            threads = self.client.nthreads()
            self.asked, self.count = time.monotonic(), int(sum(threads.values()))
            self.say(f"{len(threads)} workers")
        return max(PREFETCH * self.count - running, 1 - running, 0)


Progress = Callable[[float, float, str], None]
CHUNK = Execution().chunk


@flat_keywords(execution=Execution)
def sweep(
    arm: Arm,
    compute: Compute,
    samples: Any,
    reduce: Any = None,
    out: Any = None,
    client: Any = None,
    *,
    progress: Progress | None = None,
    execution: Execution = Execution(),
    **keywords: Unpack[SweepKeywords],
) -> Any:
    """Run a computation for many samples, in chunks; an interrupted sweep resumes with the chunks not yet stored.

    Parameters
    ----------
    arm
        The arm; workers receive it as the text of its file.
    compute
        ``compute(arm, samples[a:b])`` returns a dict of arrays by name, each ``(b - a, ...)``, or ``(axes, array)``
        with the names of the axes, the first being "sample". Arrays without a "sample" axis are coordinates ("time").
        It is a function, or a frozen dataclass with ``__call__``, like those of `armdyn.sweeps`.
    samples
        ``Uncertain.sample(count)``, an array (count, ...), or a number, for which compute gets a range of integers.
    reduce
        Reductions that workers apply to their chunks: ``[Quantiles((0.05, 0.95)), Extremes()]`` for every variable, or
        a dict of such lists by variable. Only the reduced results are kept.
    out
        Where to store results: a folder or an fsspec URL; a table if the name ends in ``.parquet``, otherwise Zarr. A
        store that belongs to another study is an error; several clients may share one store. None keeps them in memory.
    client
        A ``distributed.Client``; None uses threads of this process. The results are bitwise identical.
    chunk
        Samples per chunk: one task, one Zarr chunk or Parquet file, and the most work a killed task loses.
    threads
        The number of threads if there is no client, by default one per processor.
    progress
        Called with (chunks done, chunks, text).
    execution
        `chunk` and `threads` as a record of `armdyn.options`.

    Returns
    -------
    xarray.Dataset
        With axes sample, time, joint, …, or those of the reductions, opened from the store if there is one (a
        ``pyarrow.dataset.Dataset`` for Parquet).
    """
    chunk, threads = execution.chunk, execution.threads
    require(None if out is None else str(out), client is not None)
    count = samples if isinstance(samples, int | np.integer) and not isinstance(samples, bool) else None
    study = Study(arm, compute, samples if count is None else range(int(count)), chunk, reduce)
    store = None if out is None else store_at(out)
    layout = study.layout()
    if store is not None:
        _prepared(study, store, layout)
    run = _Run(study, store, progress)
    if client is None:
        run.take(on_threads(study, store, run.order(), _threads(threads)))
    else:
        run.take(on_cluster(client, packed(study), store, run.order(), run.say))
    return run.result(layout)


def _threads(threads: int | None) -> int:
    if threads is None:
        return cores()
    return checked_threads(threads)


def _prepared(study: Study, store: Store, layout: Variables) -> None:
    """Open the store for this study and create its variables; what the file system refuses is said with the path."""
    try:
        _created(study, store, layout)
    except ArmdynError:
        raise
    except OSError as error:
        raise FileError(f"{store.where} cannot be written: {error}; then run the sweep again to resume") from error


def _created(study: Study, store: Store, layout: Variables) -> None:
    if study.reduce is None:
        store.open(study.attributes)
        sampled = {name: v for name, v in study.whole(layout).items() if v.sampled}
        store.create(sampled, study.coordinates(layout), study.attributes, study.chunk)
        return
    if store.where.rstrip("/").endswith(".parquet"):
        raise InputError("reductions are labelled arrays, not a table; give out= a name without .parquet")
    store.open(study.attributes)


class _Run:
    """The state of one call: the chunks that are done, and their results."""

    def __init__(self, study: Study, store: Store | None, progress: Progress | None) -> None:
        self.study, self.store = study, store
        self.progress = progress or (lambda done, total, text: None)
        self.done = store.done() if store is not None else set()
        self.begun = bool(self.done)
        self.text = ""
        self.kept: dict[int, Any] = {}

    def say(self, text: str) -> None:
        """Set the text that progress shows next to the count."""
        self.text = f", {text}"

    def order(self) -> Iterator[int]:
        """The chunks still to be computed, in order, or shuffled if the store already has some.

        In the latter case another client may be working on the same store, and two clients with the same order would
        compute every chunk twice as soon as one has caught up with the other.
        """
        chunks = list(range(self.study.chunks))
        if self.begun:
            random.SystemRandom().shuffle(chunks)
        for index in chunks:
            if index not in self.done and not (self.store is not None and self.store.has(index)):
                yield index

    def take(self, results: Iterator[tuple[int, Any]]) -> None:
        """Collect the results; the first error ends the sweep."""
        total = self.study.chunks
        self._tell()
        for index, result in results:
            if isinstance(result, BaseException):
                raise self._failure(index, result) from result
            self.done.add(index)
            variables, parts = result
            if self.store is None:
                self.kept[index] = parts if variables is None else variables
            self._tell()
        if self.store is not None:
            self.done = self.store.done()
        missing = total - len(self.done)
        if missing:
            raise ComputationError(f"{missing} of {total} chunks are missing from the store; run the sweep again")

    def _tell(self) -> None:
        done, total = len(self.done), self.study.chunks
        self.progress(done, total, f"chunk {done} of {total}{self.text}")

    def _failure(self, index: int, error: BaseException) -> Exception:
        first, stop = self.study.bounds(index)
        kept = f"; {len(self.done)} of {self.study.chunks} chunks are in {self.store.where}" if self.store else ""
        said = f"chunk {index} (samples {first} to {stop - 1}) failed: {type(error).__name__}: {error}{kept}"
        again = ", run the sweep again to resume" if self.store else ""
        return (type(error) if isinstance(error, ArmdynError) else ComputationError)(said + again)

    def result(self, layout: Variables) -> Any:
        """The labelled arrays of all chunks."""
        study = self.study
        if study.reduce is not None:
            return self._reduced(layout)
        if self.store is not None:
            return self.store.read()
        pieces = [self.kept[k] for k in range(study.chunks)]
        whole = {
            name: LabelledArray(v.dims, np.concatenate([piece[name].values for piece in pieces]))
            for name, v in layout.items()
            if v.sampled
        }
        return dataset(whole, study.coordinates(layout), study.attributes)

    def _reduced(self, layout: Variables) -> Any:
        study, total = self.study, None
        for k in range(study.chunks):  # in order, because floating-point sums depend on it
            part: Part = self.kept[k] if self.store is None else self.store.parts(k)
            total = study.merged(total, part)
        assert total is not None
        found = study.finished(total, layout)
        coords = study.coordinates(layout) | {name: v for name, v in found.items() if v.dims == (name,)}
        variables = {name: v for name, v in found.items() if name not in coords}
        axes = {dim for v in variables.values() for dim in v.dims}
        coords = {name: v for name, v in coords.items() if set(v.dims) <= axes}
        if self.store is not None:
            self.store.create(variables, coords, study.attributes, study.chunk)
        return dataset(variables, coords, study.attributes)
