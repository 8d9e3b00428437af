"""Try armdyn with the lowest versions that pyproject.toml allows, and with the other Pythons of this machine.

`make test-versions` runs it. Each combination has an environment of its own in .venv-versions/, with what armdyn
requires and pytest, no peers: the self-test and the tests below must pass. Pythons that are not there are named as
not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-versions"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("test_kernels.py", "test_vectorcall.py", "test_terminal.py", "test_stability.py", "test_simulator.py")
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")


def lowest() -> list[str]:
    """The lowest allowed version of each requirement, as constraints: `numpy>=2.0` becomes `numpy==2.0`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r">=([\d.]+).*", r"==\1", requirement) for requirement in project["dependencies"]]


def interpreters() -> dict[str, str]:
    """The Pythons that can be started, by version: on the path, or installed by pyenv."""
    found = {}
    for version in PYTHONS:
        candidates = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        for candidate in filter(None, candidates):
            asked = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True
            )
            if asked.returncode == 0 and asked.stdout.decode().strip() == version:
                found[version] = str(candidate)
                break
    return found


def trial(python: str, name: str, constraints: list[str]) -> bool:
    """Install into an environment, then the self-test and the tests."""
    place = FOLDER / name
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", place], check=True)
    inside = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    file = place / "constraints.txt"
    file.write_text("\n".join(constraints), encoding="utf-8")
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", file]
    installed = subprocess.run([*pip, "-e", ROOT, *TOOLS]).returncode == 0
    if not installed:
        print(f"{name}: could not be installed")
        return False
    environment = {**os.environ, "ARMDYN_CACHE": str(place / "cache")}
    environment.pop("PYTHONPATH", None)
    said = [inside, "-c", "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in "
            "('numpy', 'llvmlite', 'scipy', 'typer', 'rich')), sep=', ')"]  # fmt: skip
    print(f"{name}: {subprocess.run(said, capture_output=True, text=True).stdout.strip()}", flush=True)
    commands = [
        [inside, "-m", "armdyn", "selftest", "--quiet", "planar3", "ur5"],
        [
            inside,
            "-m",
            "pytest",
            "-n",
            "2",
            *(["-W", "default"] if constraints else []),
            *(ROOT / "tests" / test for test in TESTS),
        ],
    ]
    return all(subprocess.run(words, cwd=ROOT, env=environment).returncode == 0 for words in commands)


def main() -> None:
    """The lowest versions on the oldest Python here, the newest ones on every other."""
    found = interpreters()
    trials = [(version, f"python{version}-newest", []) for version in list(found)[1:]]
    if found:
        oldest = next(iter(found))
        trials.insert(0, (oldest, f"python{oldest}-lowest", lowest()))
    wanted = sys.argv[1:] or [name for _, name, _ in trials]
    failed = [name for version, name, limits in trials if name in wanted and not trial(found[version], name, limits)]
    missing = [version for version in PYTHONS if version not in found]
    if missing:
        print(f"not tried, not on this machine: Python {', '.join(missing)}")
    if failed or not set(wanted) <= {name for _, name, _ in trials}:
        sys.exit(f"failed: {', '.join(failed) or 'unknown names'}; available: {', '.join(n for _, n, _ in trials)}")


if __name__ == "__main__":
    main()
