"""The trial of a generated folder: its own ``make test`` on this machine, before the folder is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from armdyn.deployment.request import CodeTarget, Files
from armdyn.errors import ComputationError

PATIENCE = 120.0  # seconds; very large robots take longer to compile
# Variables of a surrounding make or shell that would change the folder's own flags.
_NOT_PASSED_ON = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CFLAGS", "CXXFLAGS")


def trial(target: CodeTarget, contents: Files) -> str:
    """The last line of the folder's test, or why it was not run; an error if the code fails to compile or its test.

    The folder is built without optimization, in a temporary folder.
    """
    missing = [tool for tool in target.tools if shutil.which(tool) is None]
    missing += list(filter(None, [target.missing()]))
    if missing:
        return f"not run, because this machine has no {' and no '.join(missing)}"
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        environment = {key: value for key, value in os.environ.items() if key not in _NOT_PASSED_ON}
        command = ["make", "-s", "test", *target.quick]
        try:
            run = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not finished within {PATIENCE:.0f} s"
    if run.returncode != 0:
        raise ComputationError(
            f"the generated code for the target {target.name} does not pass its own test here, so nothing was written: "
            f"{first_message([*run.stderr.splitlines(), *run.stdout.splitlines()])} "
            "(build=False, --no-build, writes it without the test)"
        )
    return "; ".join(run.stdout.split("\n")).strip("; ")


def first_message(lines: Sequence[str]) -> str:
    """The first error among the lines of a compiler or a test; the first line if none says "error"."""
    texts = [line.strip() for line in lines if line.strip() and not line.startswith("make")]
    return next((text for text in texts if "error" in text.lower()), texts[0] if texts else "no message")
