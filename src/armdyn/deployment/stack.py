"""The stack usage of each function, as reported by gcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FLAGS = {"gcc": ("-std=c99", "-O2"), "g++": ("-std=c++17", "-O2")}
PATIENCE = 120.0  # seconds; if gcc takes longer, as for very large robots, no stack usage is given


@dataclass(frozen=True)
class Stack:
    """The stack frame of each function in bytes, and the compiler that reported it."""

    compiler: str
    machine: str
    flags: tuple[str, ...]
    frames: Mapping[str, int]

    @property
    def section(self) -> str:
        """The section of the README about the stack."""
        text = (
            f"The stack frame of each function, as reported by {self.compiler} for {self.machine} with "
            f"`{' '.join(self.flags)} -fstack-usage` when this folder was generated. The functions call only the "
            "mathematical library, whose stack usage must be added. Other compilers, options and processors give other "
            "values."
        )
        rows = [f"| `{name}` | {size} |" for name, size in self.frames.items()]
        return "\n".join(["## Stack", "", text, "", "| function | bytes |", "|---|---|", *rows])


def measured(compiler: str, texts: Mapping[str, str], source: str, symbols: Mapping[str, str]) -> Stack | None:
    """The stack frames of the functions in a source; `symbols` gives the compiler's name of each function.

    None if the compiler is not installed, fails or takes too long.
    """
    flags = FLAGS[compiler]
    if shutil.which(compiler) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        if _run([compiler, *flags, "-fstack-usage", "-c", source, "-o", "arm.o"], folder) is None:
            return None
        usage = (Path(folder) / "arm.su").read_text(encoding="utf-8")
        version, machine = (_run([compiler, flag], folder) for flag in ("-dumpfullversion", "-dumpmachine"))
    frames = parsed(usage, symbols)
    return Stack(f"{compiler} {(version or '').strip()}", (machine or "").strip(), flags, frames) if frames else None


def parsed(usage: str, symbols: Mapping[str, str]) -> dict[str, int]:
    """The bytes of each function from a .su file with tab-separated lines of place:name, bytes and qualifier.

    If gcc has split a function into several parts, which have its name with a suffix, their bytes are added.
    """
    found: dict[str, int] = {}
    for line in usage.splitlines():
        place, *rest = line.split("\t")
        for function, symbol in symbols.items():
            if rest and re.search(rf"(?:^|[\s:*&]){re.escape(symbol)}(?:\.\w+)*(?:\(|$)", place):
                found[function] = found.get(function, 0) + int(rest[0])
    return {function: found[function] for function in symbols if function in found}


def _run(command: list[str], folder: str) -> str | None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
