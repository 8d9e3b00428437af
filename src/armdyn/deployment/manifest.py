"""The manifest of a pipeline: hashes of inputs and outputs, versions of the libraries."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = ("numpy", "scipy", "llvmlite", "cvxpy", "clarabel")
BLOCK = 2**20  # bytes read at a time


def sha256(content: bytes) -> str:
    """The SHA-256 hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


def of_path(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Name, size and hash of a file; for a folder (a rosbag), those of every file in it."""
    where = Path(path)
    if where.is_dir():
        files = sorted(p for p in where.rglob("*") if p.is_file())
        return {"name": where.name, "files": {str(p.relative_to(where)): of_path(p) for p in files}}
    digest, size = hashlib.sha256(), 0
    with open(where, "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            size += len(block)
    return {"name": where.name, "bytes": size, "sha256": digest.hexdigest()}


def versions() -> dict[str, str]:
    """The versions of armdyn, Python and the numerical libraries."""
    from armdyn import __version__

    found = {"armdyn": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def text(data: Mapping[str, Any]) -> str:
    """The manifest as JSON; the same inputs, settings and versions give the same text."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def _plain(x: Any) -> Any:
    return x.tolist() if hasattr(x, "tolist") else str(x)
