"""Large batches on several threads: kernels release the GIL while they compute."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from armdyn.errors import InputError

SMALLEST = 2048  # configurations per thread: fewer take less time than waking up a thread

_threads = 1
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def set_threads(count: int) -> None:
    """Set the default number of threads for large batches; `threads=` of a call overrides it."""
    global _threads
    _threads = _count(count)


def checked(count: int | None) -> int:
    """A valid number of threads; None means the default."""
    return _threads if count is None else _count(count)


def _count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"threads must be a positive whole number, got {count!r}; this machine has {os.cpu_count()}")
    return int(count)


def shared(function: Any, arrays: tuple[Any, ...], out: Any, count: int) -> Any:
    """`function(*arrays, out=out)`, with the batch split into `count` parts if it is large enough."""
    values = [np.asarray(array) for array in arrays]
    batch = batch_of(function, values)
    given = (None,) * len(function.outputs) if out is None else out if isinstance(out, tuple) else (out,)
    arrays_given = all(o is None or isinstance(o, np.ndarray) for o in given)
    if batch is None or int(np.prod(batch)) < 2 * SMALLEST or len(given) != len(function.outputs) or not arrays_given:
        return function(*arrays, out=out)
    if any(o is not None and np.may_share_memory(o, v) for o in given for v in values):
        return function(*arrays, out=out)  # one part could overwrite the input of another
    whole = [
        np.empty((*batch, *shape)) if o is None else o for o, (_, shape) in zip(given, function.outputs, strict=True)
    ]
    for o, (_, shape) in zip(whole, function.outputs, strict=True):
        if o.shape != (*batch, *shape):
            return function(*arrays, out=out)  # raises the error
    spread = [np.broadcast_to(v, (*batch, *shape)) for v, (_, shape) in zip(values, function.inputs, strict=True)]
    axis = int(np.argmax(batch))
    parts = min(count, max(1, int(np.prod(batch)) // SMALLEST), batch[axis])
    bounds = np.linspace(0, batch[axis], parts + 1).astype(int)

    def one(part: int) -> None:
        cut = (*(slice(None),) * axis, slice(bounds[part], bounds[part + 1]))
        with np.errstate(all="ignore"):
            function(*(v[cut] for v in spread), out=tuple(o[cut] for o in whole))

    _run(one, parts)
    return whole[0] if len(whole) == 1 else tuple(whole)


def batch_of(function: Any, values: Sequence[Any]) -> tuple[int, ...] | None:
    """The shape of the batch; None if the arrays do not fit, which the function itself reports better."""
    if len(values) != len(function.inputs):
        return None
    batches = []
    for value, (_, shape) in zip(values, function.inputs, strict=True):
        core = value.ndim - len(shape)
        if core < 0 or value.shape[core:] != shape:
            return None
        batches.append(value.shape[:core])
    try:
        return np.broadcast_shapes(*batches)
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy broadcasts here
        return None


class _Parts:
    """The parts of a batch on several threads: which have started, and whether others may still start."""

    def __init__(self, one: Callable[[int], None]) -> None:
        self._one = one
        self._changed = threading.Condition()
        self._running = 0
        self._stopped = False

    def run(self, part: int) -> None:
        """Run one part, unless it was stopped before it started."""
        with self._changed:
            if self._stopped:
                return
            self._running += 1
        try:
            self._one(part)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Start no further part and wait for the running ones, even if interrupted."""
        interrupt = None
        while True:
            try:
                with self._changed:
                    self._stopped = True
                    while self._running:
                        self._changed.wait()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _run(one: Callable[[int], None], parts: int) -> None:
    """Run every part, the first of them on this thread. After an error or Ctrl-C no part runs any more."""
    global _pool, _pool_size
    if _pool is None or _pool_size < parts - 1:
        _pool, _pool_size = ThreadPoolExecutor(max_workers=max(1, parts - 1), thread_name_prefix="armdyn"), parts - 1
    shared_out = _Parts(one)
    try:
        waiting = [_pool.submit(shared_out.run, part) for part in range(1, parts)]
        shared_out.run(0)
        for part in waiting:
            part.result()
    finally:
        shared_out.stop()


def _after_fork() -> None:
    """Threads do not survive a fork; the child starts its own."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
