"""What the tests of README and documentation share: fenced blocks and console commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```([\w{}-]*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a Markdown page in one language."""
    return [text for name, text in FENCE.findall(path.read_text(encoding="utf-8")) if name == language]


def commands(path: Path) -> list[list[str]]:
    """The commands of the console blocks, as words, comments left out."""
    lines = [line for block in blocks(path, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line[2:], comments=True) for line in lines]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def links(path: Path) -> list[str]:
    """The relative links and pictures of a Markdown page."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link]
