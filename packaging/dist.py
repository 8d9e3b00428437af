"""Build sdist and wheel twice, compare their bytes, check them, and try the wheel in a clean environment.

`make dist` runs it and leaves the files in dist/. The clean environment lies outside the checkout and has only what the
wheel requires: the README's code, `armdyn report puma560` and `armdyn selftest` must work in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARMS = (
    "planar3",
    "puma560",
    "panda_hand",
)  # of the self-test; without names it takes the whole catalogue, and a minute


def run(*words: str | Path, **options: object) -> str:
    """A command; what it prints is shown if it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return str(done.stdout)


def build(folder: Path) -> dict[str, str]:
    """Build into a folder; the SHA-256 of each file by name. Time stamps are those of the last commit."""
    stamp = run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": stamp}
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, env=environment)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install a wheel outside the checkout and use it as the README does."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment["ARMDYN_CACHE"] = str(folder / "cache")
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[0]
    inside = {"cwd": folder, "env": environment}
    print(run(python, "-c", code, **inside).strip())
    where = run(python, "-c", "import armdyn; print(armdyn.__file__)", **inside).strip()
    if not Path(where).is_relative_to(folder):
        sys.exit(f"the wheel was not tried: armdyn was imported from {where}")
    run(programs / "armdyn", "report", "puma560", "-o", "puma560.html", **inside)
    print(f"report: {(folder / 'puma560.html').stat().st_size / 1000:.0f} kB")
    print(run(programs / "armdyn", "selftest", "--quiet", *ARMS, **inside).strip().splitlines()[-1])
    packages = folder / "env"
    size = sum(p.stat().st_size for p in packages.rglob("*") if p.is_file() and not p.is_symlink())
    print(f"installed, with pip: {size / 1e6:.0f} MB")


def main() -> None:
    """Build twice, compare, check, try, and leave the files in dist/."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        first, second = build(folder / "first"), build(folder / "second")
        if first != second:
            sys.exit(f"two builds differ: {sorted(name for name in first if first[name] != second.get(name))}")
        files = sorted((folder / "first").iterdir())
        print(f"two builds have the same bytes: {', '.join(path.name for path in files)}")
        print(run(sys.executable, "-m", "twine", "check", "--strict", *files).strip())
        (wheel,) = (path for path in files if path.suffix == ".whl")
        (folder / "outside").mkdir()
        try_wheel(wheel, folder / "outside")
        target = ROOT / "dist"
        target.mkdir(exist_ok=True)
        for path in files:
            shutil.copy2(path, target / f".{path.name}")
            os.replace(target / f".{path.name}", target / path.name)
    print(f"dist/: {', '.join(sorted(first))}")


if __name__ == "__main__":
    main()
