"""The attacks of the campaign on files and processes: mutated files, a spoilt cache, killed writers, forks.

A failing file is shrunk: it loses lines as long as it still fails.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.codegen import cache
from armdyn.codegen import compile as compiler
from armdyn.errors import ArmdynError
from armdyn.files import toml, urdf_out
from armdyn.files.text import write_text
from armdyn.kernels.kernel import Kernel, auto

SLOW = 10.0  # seconds after which a reader counts as stuck; on its own it refuses within one


@dataclass(frozen=True)
class Failure:
    """What went wrong, and the small file that shows it."""

    message: str
    content: str
    suffix: str = ".txt"

    def write(self, folder: Path, name: str) -> Path:
        """Write the case; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name + self.suffix)
        write_text(path, self.content)
        return path


def shrunk(parts: Sequence[Any], fails: Callable[[Sequence[Any]], bool]) -> Sequence[Any]:
    """Fewer parts that still fail: halves, quarters and so on are left out while that keeps the failure (ddmin)."""
    size = len(parts) // 2
    while size:
        k = 0
        while k < len(parts):
            fewer = [*parts[:k], *parts[k + size :]]
            if fewer and fails(fewer):
                parts = fewer
            else:
                k += size
        size //= 2
    return parts


# Mutated files.

_SEEDS: dict[str, list[str]] = {}
TOKENS = (
    "",
    "0",
    "-1",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "<",
    ">",
    "/>",
    "&amp;",
    '"',
    "\0",
    "\x1b[31m",
    "../../x",
    "9" * 400,
)


def _examples(suffix: str) -> list[str]:
    """Files to mutate: the catalogue's arms in both formats."""
    if suffix not in _SEEDS:
        arms = [armdyn.load(name) for name in armdyn.catalogue()]
        write = toml.text if suffix == ".toml" else urdf_out.text
        _SEEDS[suffix] = [write(arm.description) for arm in arms]
    return _SEEDS[suffix]


def mutated(rng: random.Random, text: str) -> str:
    """The text with a few random edits: characters, tokens, lines doubled, lost or exchanged."""
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        lines = text.split("\n")
        k, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 20) :]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x2FFF)))) + text[at + 1 :]
        elif kind == 3:
            lines[k], lines[j] = lines[j], lines[k]
            text = "\n".join(lines)
        elif kind == 4:
            lines.insert(j, lines[k])
            text = "\n".join(lines)
        elif kind == 5:
            del lines[k]
            text = "\n".join(lines)
        else:
            numbers = [i for i, c in enumerate(text) if c.isdigit()]
            if numbers:
                i = rng.choice(numbers)
                text = text[:i] + rng.choice(TOKENS) + text[i + 1 :]
    return text


@contextmanager
def _limited(seconds: float) -> Any:
    def stuck(*_: Any) -> None:
        raise TimeoutError(f"still reading after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read_error(text: str, path: Path) -> str:
    """How reading the file fails in another way than by an error of ours; "" if it does not."""
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        with _limited(SLOW):
            arm = armdyn.load(path)
            arm.check()
            repr(arm)
    except ArmdynError as error:
        return "" if str(error).strip() else "an error without a message"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


def files(seed: int, folder: Path) -> Failure | None:
    """A mutated URDF or TOML file: it loads, or there is an error of ours within seconds."""
    rng = random.Random(seed)
    suffix = rng.choice((".urdf", ".toml"))
    path = folder / f"mutated{suffix}"
    text = mutated(rng, rng.choice(_examples(suffix)))
    message = read_error(text, path)
    if not message:
        return None
    kind = message.split(":")[0]
    lines = shrunk(text.split("\n"), lambda parts: read_error("\n".join(parts), path).startswith(kind))
    return Failure(message, "\n".join(lines), suffix)


# The cache on disk.


def _spoil(rng: random.Random, entry: Path) -> str:
    content = entry.read_bytes()
    kind = rng.choice(("truncate", "flip", "append", "swap", "empty", "pipe", "link", "folder", "mode", "remove"))
    if kind == "truncate":
        entry.write_bytes(content[: rng.randrange(len(content))])
    elif kind == "flip":
        at = rng.randrange(len(content))
        entry.write_bytes(content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :])
    elif kind == "append":
        entry.write_bytes(content + bytes(rng.randrange(1, 50)))
    elif kind == "swap":
        others = [p for p in entry.parent.iterdir() if p != entry and p.is_file()]
        if others:
            entry.write_bytes(rng.choice(others).read_bytes())
    elif kind == "empty":
        entry.write_bytes(b"")
    elif kind == "mode":
        entry.chmod(0o666)
    else:
        entry.unlink()
        if kind == "pipe":
            os.mkfifo(entry)
        elif kind == "link":
            entry.symlink_to("/dev/zero")
        elif kind == "folder":
            entry.mkdir()
    return kind


def _computed(arm: str, q: Any) -> bytes:
    """The bits, as a new process would compute them: nothing is remembered but what is on disk."""
    auto.cache_clear()
    compiler._LOADED.clear()
    return b"".join(
        np.asarray(Kernel(armdyn.load(arm).chain, name)(q)).tobytes() for name in ("inertia_matrix", "gravity_load")
    )


def spoilt_cache(seed: int, folder: Path) -> Failure | None:
    """Spoilt entries of the cache: the bits stay the same, and nothing hangs."""
    rng = random.Random(seed)
    before = os.environ.get("ARMDYN_CACHE")
    os.environ["ARMDYN_CACHE"] = str(folder / "kernels")
    try:
        q = np.array([rng.uniform(-2, 2) for _ in range(3)])
        expected, done = _computed("planar3", q), []
        for _ in range(4):
            entries = sorted(p for p in (folder / "kernels").rglob(f"*{cache.SUFFIX}") if p.is_file())
            if entries:
                done.append(_spoil(rng, rng.choice(entries)))
            with _limited(SLOW):
                if _computed("planar3", q) != expected:
                    return Failure(f"other bits after {done}", f"seed {seed}: {done}")
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}"[:200], f"seed {seed}: {done}")
    finally:
        os.environ.pop("ARMDYN_CACHE")
        if before is not None:
            os.environ["ARMDYN_CACHE"] = before
    return None


# Killed writers.

WRITER = """
import sys, armdyn
arms = [armdyn.load("scara").with_payload(m, [0, 0, 0.1]) for m in (1.0, 2.0)]
print("ready", flush=True)
while True:
    for arm in arms:
        arm.save(sys.argv[1] + "/arm.toml")
        arm.to_urdf(sys.argv[1] + "/arm.urdf")
"""


def killed_writers(seed: int, folder: Path) -> Failure | None:
    """A process that is killed while it writes leaves whole files: the old content or the new one."""
    rng = random.Random(seed)
    expected = {}
    for mass in (1.0, 2.0):
        arm = armdyn.load("scara").with_payload(mass, [0, 0, 0.1])
        for path in (folder / "arm.toml", folder / "arm.urdf"):
            (arm.save if path.suffix == ".toml" else arm.to_urdf)(path)
            expected.setdefault(path, set()).add(path.read_bytes())
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(rng.uniform(0, 0.2))
    writer.kill()
    writer.communicate()
    for path, contents in expected.items():
        if path.read_bytes() not in contents:
            return Failure(f"{path.name} is neither old nor new", path.read_text(errors="replace"), path.suffix)
    return None


# Threads and forks.


def forks(seed: int, folder: Path) -> Failure | None:
    """Threads that compute and compile while the process forks; the child compiles and computes the same bits."""
    rng = random.Random(seed)
    arm = armdyn.generic_arm("".join(rng.choice("RRP") for _ in range(rng.randint(1, 3))), seed)
    q = np.array([rng.uniform(-2, 2) for _ in range(arm.n)])
    expected = np.asarray(arm.inertia_matrix(q)).tobytes()
    stop, wrong = threading.Event(), []

    def compute() -> None:
        while not stop.is_set():
            if np.asarray(Kernel(arm.chain, "inertia_matrix")(q)).tobytes() != expected:
                wrong.append("a thread")

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(rng.uniform(0, 0.05))
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            same = np.asarray(Kernel(arm.chain, "inertia_matrix")(q)).tobytes() == expected
            finite = np.isfinite(arm.with_payload(1.0 + rng.random(), [0, 0, 0.1]).gravity_load(q)).all()
            os._exit(0 if same and finite else 1)
        _, status = os.waitpid(child, 0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if status or wrong:
        return Failure(f"forked child: status {status}; {', '.join(wrong) or 'threads right'}", f"seed {seed}")
    return None
