"""Tables out of files: CSV, NPZ, Parquet, rosbag2 and MCAP. A table is a dict of columns."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import FileError

Table = dict[str, NDArray[np.float64]]


def read_table(path: str | os.PathLike[str], topic: str | None = None) -> Table:
    """The columns of a log file, whichever of the known kinds it is."""
    where = Path(path)
    if not where.exists():
        raise FileError(f"{where}: no such log")
    kind = where.suffix.lower()
    if where.is_dir() or kind in (".mcap", ".db3"):
        return _bag(where, topic)
    readers = {".csv": _csv, ".txt": _csv, ".tsv": _csv, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}
    if kind not in readers:
        raise FileError(
            f"{where}: unknown kind of log {kind!r}; available: {', '.join(readers)}, .mcap, rosbag2 folders"
        )
    table = readers[kind](where)
    if not table or not len(next(iter(table.values()))):
        raise FileError(f"{where}: the log is empty")
    return table


def _csv(where: Path) -> Table:
    try:
        with where.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            delimiter = max(",;\t", key=head.count)
            names = [name.strip().lstrip("#").strip() for name in next(csv.reader([head], delimiter=delimiter))]
            if all(_is_number(name) for name in names):
                raise FileError(f"{where}: the first line must name the columns, got numbers: {head.strip()[:60]!r}")
            if not (body := stream.read().strip()):
                raise FileError(f"{where}: the log is empty")
            rows = np.loadtxt(body.splitlines(), delimiter=delimiter, ndmin=2, converters=_number, dtype=float)
    except (UnicodeDecodeError, ValueError) as error:
        raise FileError(f"{where}: not a table of numbers ({error})") from error
    if rows.shape[1] != len(names):
        raise FileError(f"{where}: the first line names {len(names)} columns, the rows have {rows.shape[1]}")
    if len(set(names)) != len(names):
        raise FileError(f"{where}: two columns have the same name among {', '.join(names)}")
    return {name: rows[:, k] for k, name in enumerate(names)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    """An empty cell is a missing value."""
    return float(text) if text.strip() else float("nan")


def _npz(where: Path) -> Table:
    """One array per column, or (N, n) arrays q, qd, tau spread into q1 ... qn."""
    try:
        with np.load(where, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name], dtype=float) for name in stored.files}
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: not a readable NPZ file ({error})") from error
    table: Table = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            table[name] = array
        elif array.ndim == 2:
            table |= {f"{name}{k + 1}": array[:, k] for k in range(array.shape[1])}
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise FileError(f"{where}: the arrays have different lengths: {lengths}")
    return table


def _parquet(where: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise FileError(f"{where}: reading Parquet needs pyarrow: pip install 'armdyn[data]'") from error
    try:
        stored = parquet.read_table(where)
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: not a readable Parquet file ({error})") from error
    out: Table = {}
    for name in stored.column_names:
        column = stored.column(name)
        try:
            out[name] = np.asarray(column.to_numpy(), dtype=float)
        except (TypeError, ValueError):
            continue  # text columns are no signals
    return out


def _bag(where: Path, topic: str | None) -> Table:
    """A sensor_msgs/JointState topic of a rosbag2 folder or of a single MCAP or SQLite file."""
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise FileError(f"{where}: reading ROS bags needs rosbags: pip install 'armdyn[ros]'") from error
    folder = where if where.is_dir() or not (where.parent / "metadata.yaml").exists() else where.parent
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as reader:
            known = [c for c in reader.connections if c.msgtype.endswith("msg/JointState")]
            chosen = [c for c in known if topic is None or c.topic == topic]
            topics = sorted({c.topic for c in chosen})
            if len(topics) != 1:
                available = ", ".join(sorted({c.topic for c in known})) or "none"
                raise FileError(f"{where}: expected one JointState topic, found {topics}; available: {available}")
            messages = [
                reader.deserialize(raw, connection.msgtype)
                for connection, _, raw in reader.messages(connections=chosen)
            ]
    except AnyReaderError as error:
        raise FileError(f"{where}: not a readable bag ({error})") from error
    return _joint_states(where, messages)


def _joint_states(where: Path, messages: list[Any]) -> Table:
    names = list(messages[0].name) if messages else []
    if not names:
        raise FileError(f"{where}: the topic has no messages with joint names")
    start = messages[0].header.stamp  # relative stamps keep their nanoseconds
    stamps = [(m.header.stamp.sec - start.sec) + 1e-9 * (m.header.stamp.nanosec - start.nanosec) for m in messages]
    table: Table = {"t": np.array(stamps)}
    for field in ("position", "velocity", "effort"):
        values = [dict(zip(m.name, getattr(m, field), strict=False)) for m in messages]
        if not any(values):
            continue
        for name in names:
            table[f"{name}/{field}"] = np.array([v.get(name, np.nan) for v in values], dtype=float)
    return table
