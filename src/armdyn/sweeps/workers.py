"""Executors of the chunks: threads of this process, or the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from armdyn.identification.threads import one_thread
from armdyn.sweeps.labels import Variables, needed
from armdyn.sweeps.stores import Store
from armdyn.sweeps.study import Study, unpacked

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
        parts = study.parts(variables, first)
        if store is None:
            return None, parts
        store.mark(index, parts)
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
