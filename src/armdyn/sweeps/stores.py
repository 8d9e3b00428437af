"""Stores of studies: a folder or URL with the data, and markers of the chunks that are complete.

The data of a chunk is written first and its marker last, each file atomically. A chunk without a marker is computed
again, with bitwise the same result, so a process killed at any moment leaves a valid store.
"""

from __future__ import annotations

import io
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armdyn.errors import FileError, InputError
from armdyn.files.text import written_whole
from armdyn.sweeps.reductions import LabelledArray, Part, Variables, needed
from armdyn.values import cached_property

OWN = "_armdyn"  # readers of Parquet folders ignore names that start with an underscore


@dataclass(frozen=True)
class Folder:
    """Files by name in a local folder, or under a URL that fsspec supports (s3://…, gs://…, memory://…)."""

    where: str

    @cached_property
    def _remote(self) -> Any:
        return needed("fsspec").core.url_to_fs(self.where) if "://" in self.where else None

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if it does not exist."""
        try:
            if self._remote is None:
                return (Path(self.where) / name).read_bytes()
            files, root = self._remote
            return bytes(files.cat_file(f"{root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically; object stores do that by themselves."""
        if self._remote is None:
            path = Path(self.where) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as stream:
                stream.write(content)
            return
        files, root = self._remote
        files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
        files.pipe_file(f"{root}/{name}", content)

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        if self._remote is None:
            return (Path(self.where) / name).is_file()
        files, root = self._remote
        return bool(files.exists(f"{root}/{name}"))

    def names(self, folder: str) -> set[str]:
        """The names of the files in a folder."""
        if self._remote is None:
            here = Path(self.where) / folder
            return {entry.name for entry in here.iterdir()} if here.is_dir() else set()
        files, root = self._remote
        try:
            files.invalidate_cache()
            return {str(path).rpartition("/")[2] for path in files.ls(f"{root}/{folder}", detail=False)}
        except FileNotFoundError:
            return set()


@dataclass(frozen=True)
class Store(ABC):
    """The store of a study: `open` it, `put` chunks, and query which are complete."""

    where: str

    @cached_property
    def folder(self) -> Folder:
        """The files of the study."""
        return Folder(self.where)

    def open(self, study: Mapping[str, Any]) -> bool:
        """Claim the store for this study and return whether it is new; an error if it belongs to another study."""
        found = self.folder.read(f"{OWN}/study.json")
        if found is None:
            if "://" not in self.where and Path(self.where).exists() and any(Path(self.where).iterdir()):
                raise FileError(f"{self.where} is not empty and holds no study; give another out=")
            self.folder.write(f"{OWN}/study.json", json.dumps(study, indent=2, sort_keys=True).encode())
            return True
        theirs = json.loads(found)
        if theirs.get("fingerprint") != study["fingerprint"]:
            differ = [key for key in study if key != "fingerprint" and theirs.get(key) != study[key]]
            said = "; ".join(f"{key}: {theirs.get(key)!r} there, {study[key]!r} here" for key in differ[:3])
            raise FileError(f"{self.where} belongs to another study ({said or 'its code or data differ'})")
        return False

    def done(self) -> set[int]:
        """The chunks that are complete."""
        names = self.folder.names(f"{OWN}/chunks")
        return {int(name[:-4]) for name in names if name.endswith(".npz") and name[:-4].isdigit()}

    def has(self, chunk: int) -> bool:
        """Whether a chunk is complete."""
        return self.folder.has(_mark(chunk))

    def mark(self, chunk: int, parts: Mapping[str, np.ndarray]) -> None:
        """Mark a chunk as complete, and store its partial reductions."""
        stream = io.BytesIO()
        arrays: Any = dict(parts)
        np.savez(stream, **arrays)
        self.folder.write(_mark(chunk), stream.getvalue())

    def parts(self, chunk: int) -> Part:
        """The partial reductions of a chunk."""
        content = self.folder.read(_mark(chunk))
        if content is None:
            raise FileError(f"{self.where}: chunk {chunk} was deleted; run the sweep again")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    @abstractmethod
    def create(self, variables: Variables, coords: Variables, attributes: Mapping[str, Any], chunk: int) -> None:
        """Create the variables at the full size of the study; idempotent."""

    @abstractmethod
    def put(self, chunk: int, first: int, variables: Variables) -> None:
        """Write the values of a chunk, whose samples start at `first`."""

    @abstractmethod
    def read(self) -> Any:
        """The data as an xarray Dataset, or a table."""


def _mark(chunk: int) -> str:
    return f"{OWN}/chunks/{chunk:08d}.npz"


class ZarrStore(Store):
    """Arrays in a Zarr group, one Zarr chunk per chunk of samples."""

    def _group(self) -> Any:
        return needed("zarr").open_group(self.where, mode="a", zarr_format=2)

    def create(self, variables: Variables, coords: Variables, attributes: Mapping[str, Any], chunk: int) -> None:
        """See `Store`."""
        zarr, group = needed("zarr"), self._group()
        beside = [name for name, v in coords.items() if v.dims != (name,)]
        group.attrs.update(dict(attributes) | ({"coordinates": " ".join(beside)} if beside else {}))
        for name, v in (variables | coords).items():
            if name not in group:
                shape, kind = v.values.shape, v.values.dtype
                pieces = tuple(max(1, min(chunk, k) if axis == 0 and v.sampled else k) for axis, k in enumerate(shape))
                # No fill value: xarray would read it as missing.
                array = group.create_array(name, shape=shape, dtype=kind, chunks=pieces, fill_value=None)
                array.attrs["_ARRAY_DIMENSIONS"] = list(v.dims)
            if not v.sampled:
                group[name][...] = v.values
        with warnings.catch_warnings():  # Zarr warns about the folder of markers
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(group.store)

    def put(self, chunk: int, first: int, variables: Variables) -> None:
        """See `Store`."""
        group = self._group()
        for name, v in variables.items():
            if v.sampled:
                group[name][first : first + len(v.values)] = v.values

    def read(self) -> Any:
        """See `Store`."""
        return needed("xarray").open_zarr(self.where, consolidated=True, chunks=None)


class ParquetStore(Store):
    """A table in a folder of Parquet files, one per chunk; axes beyond the samples become columns."""

    def create(self, variables: Variables, coords: Variables, attributes: Mapping[str, Any], chunk: int) -> None:
        """See `Store`."""
        if not any(v.sampled for v in variables.values()):
            raise InputError("a table has one row per sample; reductions need Zarr: give out= a name without .parquet")
        wide = [name for name, v in variables.items() if np.prod(v.values.shape[1:], dtype=int) > 1000]
        if wide:
            raise InputError(f"{wide[0]} has more than 1000 numbers per sample, too many columns; use Zarr")

    def put(self, chunk: int, first: int, variables: Variables) -> None:
        """See `Store`."""
        pyarrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
        count = next(len(v.values) for v in variables.values() if v.sampled)
        columns: dict[str, np.ndarray] = {"sample": np.arange(first, first + count)}
        for name, v in variables.items():
            columns |= _columns(name, v) if v.sampled else {}
        stream = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), stream)
        self.folder.write(f"part-{chunk:08d}.parquet", stream.getvalue())

    def read(self) -> Any:
        """See `Store`."""
        dataset = needed("pyarrow.dataset")
        files = None if self.folder._remote is None else self.folder._remote[0]
        root = self.where if files is None else self.folder._remote[1]
        return dataset.dataset(root, format="parquet", filesystem=files)


def _columns(name: str, v: LabelledArray) -> dict[str, np.ndarray]:
    if v.values.ndim == 1:
        return {name: v.values}
    places = np.ndindex(*v.values.shape[1:])
    return {f"{name}{'_'.join(str(k + 1) for k in at)}": v.values[(slice(None), *at)] for at in places}


def store_at(where: Any) -> Store:
    """The store at a local path or URL: a table if the name ends in .parquet, otherwise Zarr."""
    try:
        name = str(where) if "://" in str(where) else str(Path(where))
    except TypeError:
        raise InputError(f"out must be a path or a URL, got {where!r}") from None
    if name.startswith("file://"):
        name = name[len("file://") :]
    return ParquetStore(name) if name.rstrip("/").endswith(".parquet") else ZarrStore(name)
