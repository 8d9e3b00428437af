"""Reading log files: CSV and text, NPZ, MAT, Parquet, rosbag2 and MCAP. A table is a dict of columns."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import FileError, required

Table = dict[str, NDArray[np.float64]]
MOST = 2**30  # bytes of numbers: more than an hour of seven joints at 1 kHz


def read_table(
    path: str | os.PathLike[str], topic: str | None = None, names: Sequence[str] = ()
) -> tuple[Table, list[str]]:
    """The columns of a log file of any supported format, and notes; `names` are the column names of a text file."""
    where = Path(path)
    if not where.exists():
        raise FileError(f"{where}: no such log")
    kind = where.suffix.lower()
    if where.is_dir() or kind in (".mcap", ".db3"):
        return _bag(where, topic), []
    if kind in (".csv", ".txt", ".tsv", ".dat"):
        table, notes = _text(where, names)
    else:
        readers = {".npz": _npz, ".mat": _mat, ".parquet": _parquet, ".pq": _parquet}
        if kind not in readers:
            known = f".csv, .txt, .tsv, .dat, {', '.join(readers)}, .mcap, rosbag2 folders"
            raise FileError(f"{where}: unknown log format {kind!r}; available: {known}")
        table, notes = readers[kind](where), []
    if not table or not len(next(iter(table.values()))):
        raise FileError(f"{where}: the log is empty")
    return table, notes


def _limited(where: Path, size: float) -> None:
    if size > MOST:
        raise FileError(
            f"{where}: {size / 2**30:.1f} GiB of numbers; at most {MOST / 2**30:.0f} are read: shorten the log"
        )


def _text(where: Path, names: Sequence[str]) -> tuple[Table, list[str]]:
    """Columns separated by commas, semicolons, tabs or spaces; the first line names them unless `names` are given."""
    _limited(where, where.stat().st_size / 2)
    try:
        lines = [line for line in where.read_text(encoding="utf-8-sig").splitlines() if line.strip(' \t,;"#%')]
    except UnicodeDecodeError as error:
        raise FileError(f"{where}: not a table of numbers ({error})") from error
    if not lines:
        raise FileError(f"{where}: the log is empty")
    delimiter = max(",;\t", key=lines[0].count)
    split = delimiter if delimiter in lines[0] else None
    first = [name.strip().strip('"').lstrip("#%").strip() for name in lines[0].lstrip("#% ").split(split)]
    headed = not all(_is_number(name) for name in first if name)
    if not headed and not names:
        raise FileError(
            f"{where}: the first line must name the columns, got numbers: {lines[0].strip()[:60]!r};"
            f" or name the {len(first)} columns: columns=['t', 'q1', ...] (--columns t,q1,...)"
        )
    body, notes = lines[1:] if headed else lines, []
    if not body:
        raise FileError(f"{where}: the log is empty")
    if split in (";", "\t") and "." not in body[0] and re.search(r"\d,\d", body[0]):
        body = [line.replace(",", ".") for line in body]
        notes.append("numbers have decimal commas")
    if len(body) > 1 and len(body[-1].split(split)) < len(body[-2].split(split)):
        body = body[:-1]
        notes.append("the last row was cut off in the middle: dropped")
    rows = _numbers(where, body, split)
    own = list(names) or first
    if rows.shape[1] != len(own):
        who = "columns" if names else "the first line"
        raise FileError(f"{where}: {who} names {len(own)} columns, the rows have {rows.shape[1]}")
    kept = [k for k, name in enumerate(own) if name not in ("", "-")]
    if len({own[k] for k in kept}) != len(kept):
        raise FileError(f"{where}: two columns have the same name among {', '.join(own)}")
    return {own[k]: rows[:, k] for k in kept}, notes


def _numbers(where: Path, body: list[str], split: str | None) -> NDArray[np.float64]:
    """Rows of numbers; an empty cell is a missing value."""
    try:
        return np.loadtxt(body, delimiter=split, ndmin=2)
    except ValueError:
        pass
    try:
        return np.asarray(np.loadtxt(body, delimiter=split, ndmin=2, converters=_number, dtype=float))
    except ValueError as error:
        raise FileError(f"{where}: not a table of numbers ({error})") from error


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
        with zipfile.ZipFile(where) as stored:
            _limited(where, sum(entry.file_size for entry in stored.infolist()))
        with np.load(where, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name], dtype=float) for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise FileError(f"{where}: not a readable NPZ file ({error})") from error
    return _spread(where, arrays)


def _mat(where: Path) -> Table:
    """The variables of a MAT file up to version 7.2, or the fields of its structures."""
    required("scipy")
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        _limited(where, 8 * sum(float(np.prod(shape)) for _, shape, _ in whosmat(where)))
        stored = loadmat(where, squeeze_me=True, struct_as_record=True)
    except NotImplementedError as error:
        raise FileError(f"{where}: MATLAB 7.3 files are not read: save it with -v7") from error
    except (OSError, ValueError, TypeError, MatReadError) as error:
        raise FileError(f"{where}: not a readable MAT file ({error})") from error
    arrays = {}
    for name, value in stored.items():
        fields = value.dtype.names if isinstance(value, np.ndarray) and value.dtype.names else ()
        for key, array in [(f, value[f].item()) for f in fields] or [(name, value)]:
            array = np.asarray(array)
            if not name.startswith("__") and array.dtype.kind in "fiu" and array.size > 1:
                arrays[key] = array.astype(float)
    rows = max((max(a.shape) for a in arrays.values()), default=0)
    return _spread(where, {k: a.T if a.ndim == 2 and a.shape[1] == rows else a for k, a in arrays.items()})


def _spread(where: Path, arrays: dict[str, Any]) -> Table:
    """Arrays (N, n) as n columns; an error unless all have the same length."""
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
        about = parquet.read_metadata(where)
        _limited(where, 8.0 * about.num_rows * about.num_columns)
        stored = parquet.read_table(where)
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: not a readable Parquet file ({error})") from error
    out: Table = {}
    for name in stored.column_names:
        column = stored.column(name)
        try:
            values = column.to_numpy()
            rows = np.stack(values) if values.dtype == object and len(values) else values  # a vector per row
            out |= _spread(where, {name: np.asarray(rows, dtype=float)})
        except (TypeError, ValueError):
            continue  # text columns are not signals
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
    start = messages[0].header.stamp  # times relative to the first keep nanosecond resolution
    stamps = [(m.header.stamp.sec - start.sec) + 1e-9 * (m.header.stamp.nanosec - start.nanosec) for m in messages]
    table: Table = {"t": np.array(stamps)}
    for field in ("position", "velocity", "effort"):
        values = [dict(zip(m.name, getattr(m, field), strict=False)) for m in messages]
        if not any(values):
            continue
        for name in names:
            table[f"{name}/{field}"] = np.array([v.get(name, np.nan) for v in values], dtype=float)
    return table
