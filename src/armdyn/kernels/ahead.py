"""Compiling kernels ahead of their first call, on all cores: `Arm.compile`.

Making a program is Python, which runs on one core per process. So worker processes make the programs, compile them and
store the code in the cache on disk, from where this process loads it. Kernels that are in the cache already are only
loaded. Without a cache, or where no other interpreter can be started, everything is compiled here.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from armdyn.codegen import cache
from armdyn.codegen.target import host
from armdyn.errors import ArmdynError
from armdyn.kernels.kernel import Kernel
from armdyn.processes import cores, interpreter

Progress = Callable[[float, float, str], None]
_WORKER = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from armdyn.kernels import ahead; ahead.serve()"


def compile_ahead(
    kernels: Sequence[Kernel], workers: int | None = None, progress: Progress | None = None, background: bool = False
) -> None:
    """Compile kernels; `progress(done, total, text)` says how many are ready, by default to a bar in a terminal."""
    if background:
        threading.Thread(target=_compile, args=(kernels, workers, progress or _silent), daemon=True).start()
    elif progress is None and sys.stderr.isatty():
        with _bar() as shown:
            _compile(kernels, workers, shown)
    else:
        _compile(kernels, workers, progress or _silent)


def _silent(done: float, total: float, text: str) -> None:
    pass


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling")
        yield lambda done, total, text: bar.update(task, completed=done, total=total, description=text)


def _compile(kernels: Sequence[Kernel], workers: int | None, report: Progress) -> None:
    done = 0

    def ready(kernel: Kernel) -> None:
        nonlocal done
        done += 1
        report(done, len(kernels), f"compiled {kernel.__name__}")

    report(0, len(kernels), "compiling")
    missing = [kernel for kernel in kernels if kernel._compiled is None and cache.get(_mark(kernel)) is None]
    count = min(len(missing), workers or cores())
    apart = _by_workers(missing, count, ready) if count > 1 and cache.folder() and interpreter() else []
    for kernel in kernels:
        assert kernel.compiled is not None  # loaded from the cache; compiled here if no worker did, with its error
        cache.put(_mark(kernel), b"compiled")
        if not any(kernel is one for one in apart):
            ready(kernel)


def _mark(kernel: Kernel) -> str | None:
    """The name of the entry that says that a kernel was compiled: its code and its formulation are in the cache."""
    asked = kernel.chain, kernel.quantity, kernel._asked_method, kernel.options, kernel.dtype or ""
    return cache.key("compiled ahead", *asked, repr(host()))


def _by_workers(kernels: Sequence[Kernel], count: int, ready: Callable[[Kernel], None]) -> list[Kernel]:
    """Compile on worker processes; gives the kernels that they compiled."""
    waiting: SimpleQueue[Kernel] = SimpleQueue()
    for kernel in kernels:
        waiting.put(kernel)
    compiled: list[Kernel] = []
    lock = threading.Lock()

    def drain() -> None:
        with _worker() as compiles:
            while True:
                try:
                    kernel = waiting.get_nowait()
                except Empty:
                    return
                if not compiles(kernel):
                    return
                with lock:
                    compiled.append(kernel)
                    ready(kernel)

    threads = [threading.Thread(target=drain, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return compiled


@contextmanager
def _worker() -> Iterator[Callable[[Kernel], bool]]:
    """A function that compiles a kernel in a process of its own, and says whether it could."""
    modules = json.dumps([os.path.abspath(folder) for folder in sys.path])
    command = [sys.executable, "-I", "-c", _WORKER, modules]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.path.sep
        )
    except OSError:
        yield lambda kernel: False
        return
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def compiles(kernel: Kernel) -> bool:
        try:
            pickle.dump(kernel, requests)
            requests.flush()
            return answers.readline() == b"compiled\n"
        except OSError:  # it has ended
            return False

    try:
        yield compiles
    finally:
        with suppress(OSError):
            requests.close()
        answers.close()
        process.wait()


def serve() -> None:
    """The loop of a worker: compile the kernels that come in, until there are no more."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # nothing else may write there
    while True:
        try:
            kernel = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            assert kernel.compiled is not None
            answers.write(b"compiled\n")
        except (ArmdynError, ArithmeticError):  # the parent meets the same error
            answers.write(b"failed\n")
        answers.flush()
