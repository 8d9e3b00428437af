"""Study files: a study as TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from armdyn.arm import Arm, load
from armdyn.errors import FileError, InputError, choose
from armdyn.files.text import read_bytes
from armdyn.sweeps.engine import CHUNK
from armdyn.sweeps.ready import Bootstrap, Capability, DataSet, Design, Robustness, designs
from armdyn.sweeps.reductions import from_table
from armdyn.uncertainty import Normal, Uncertain, Uniform

TOP = ("study", "arm", "samples", "seed", "points", "chunk", "out", "reduce", "uncertain")
VARIED = ("payload_mass", "payload_com", "link_masses", "link_coms", "link_inertias", "friction", "viscous", "coulomb",
          "gravity", "joint_offsets")  # fmt: skip
DISTRIBUTIONS: dict[str, Callable[..., Any]] = {"normal": Normal, "uniform": Uniform}


@dataclass(frozen=True, eq=False)
class StudyFile:
    """The contents of a study file, as arguments for `sweep`."""

    study: str
    arm: Arm
    compute: Any
    samples: Any
    reduce: Any
    out: str | None
    chunk: int


def read_study(path: str | os.PathLike[str]) -> StudyFile:
    """Read a study file; paths in it are relative to its folder."""
    where = Path(path)
    try:
        table = tomllib.loads(read_bytes(where).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{where}: {error}") from None
    try:
        return _study(table, where.parent)
    except InputError as error:
        raise FileError(f"{where}: {error}") from error


def _study(table: Mapping[str, Any], folder: Path) -> StudyFile:
    kind = choose("study", table.get("study"), STUDIES)
    for key in table:
        choose("key", key, (*TOP, kind))
    if not isinstance(table.get("arm"), str):
        raise InputError(f"arm must be a catalogue name or a file, got {table.get('arm')!r}")
    arm = _arm(table["arm"], folder)
    own = {name: _plain(x) for name, x in table.get(kind, {}).items()}
    compute, samples = STUDIES[kind](arm, own, table, folder)
    reduce = from_table(table["reduce"]) if "reduce" in table else None
    out = table.get("out")
    return StudyFile(kind, arm, compute, samples, reduce, _location(out, folder), int(table.get("chunk", CHUNK)))


def _arm(name: str, folder: Path) -> Arm:
    beside = folder / name
    return load(beside) if beside.suffix and beside.exists() else load(name)


def _location(out: Any, folder: Path) -> str | None:
    if out is None:
        return None
    return str(out) if "://" in str(out) else str(folder / str(out))


def _plain(x: Any) -> Any:
    """Lists as tuples, for frozen dataclasses."""
    return tuple(_plain(item) for item in x) if isinstance(x, list) else x


def _count(table: Mapping[str, Any]) -> int:
    count = table.get("samples")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"samples must be a whole number, at least 1; got {count!r}")
    return count


def _uncertain(arm: Arm, table: Mapping[str, Any], folder: Path) -> Uncertain | None:
    given = table.get("uncertain")
    if given is None:
        return None
    for key in given:
        choose("uncertain number", key, VARIED)
    numbers = {name: _distribution(x, name) for name, x in given.items()}
    return Uncertain(arm, **numbers, seed=table.get("seed", 0), points=table.get("points", "random"))


def _distribution(given: Any, name: str) -> Any:
    """``{ normal = [mean, sd] }``, ``{ uniform = [low, high] }``, a number, a list of these, or a table by joint."""
    if isinstance(given, list):
        return [_distribution(x, name) for x in given]
    if not isinstance(given, Mapping):
        return given
    if set(given) <= set(DISTRIBUTIONS) and len(given) == 1:
        ((kind, numbers),) = given.items()
        if not isinstance(numbers, list) or len(numbers) != 2:
            raise InputError(f"{name}: {kind} takes two numbers, got {numbers!r}")
        return DISTRIBUTIONS[kind](*map(float, numbers))
    return {key: _distribution(x, name) for key, x in given.items()}


def _made(kind: Any, own: Mapping[str, Any], **more: Any) -> Any:
    """The study's dataclass from its table, or an error that lists the fields."""
    for key in own:
        choose(f"setting of {kind.__name__.lower()}", key, [f.name for f in fields(kind)])
    try:
        return kind(**{**more, **own})
    except TypeError as error:
        raise InputError(f"{kind.__name__.lower()}: {error}") from None


def _robustness(arm: Arm, own: Mapping[str, Any], table: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    uncertain = _uncertain(arm, table, folder)
    if uncertain is None:
        raise InputError("a robustness study needs a table [uncertain]")
    return _made(Robustness, own), uncertain.sample(_count(table))


def _capability(arm: Arm, own: Mapping[str, Any], table: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    return _made(Capability, own, seed=table.get("seed", 0)), _count(table)


def _data_set(arm: Arm, own: Mapping[str, Any], table: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    uncertain, count = _uncertain(arm, table, folder), _count(table)
    return _made(DataSet, own, seed=table.get("seed", 0)), count if uncertain is None else uncertain.sample(count)


def _bootstrap(arm: Arm, own: Mapping[str, Any], table: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    from armdyn.identification import Log, identify

    settings = dict(own)
    if "log" not in settings:
        raise InputError('bootstrap needs log = "...", the log to identify from')
    log = Log.read(folder / settings.pop("log"), joints=[j.name for j in arm.joints])
    block = settings.pop("block", None)
    estimate = identify(arm, log, **settings)
    return Bootstrap.of(estimate, log, block, table.get("seed", 0)), _count(table)


def _design(arm: Arm, own: Mapping[str, Any], table: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    settings = dict(own)
    grids = [settings.pop(name, {}) for name in ("lengths", "masses")]
    names = arm.joint_names
    for grid in grids:
        for name in grid:
            choose("joint", name, names)
    lengths, masses = ([grid.get(name, [1.0]) for name in names] for grid in grids)
    return _made(Design, settings, seed=table.get("seed", 0)), designs(lengths, masses)


STUDIES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "robustness": _robustness,
    "capability": _capability,
    "data_set": _data_set,
    "bootstrap": _bootstrap,
    "design": _design,
}
