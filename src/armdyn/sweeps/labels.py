"""The results of a study's function as arrays with named axes: sample, time, joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError

SAMPLE = "sample"
Variables = dict[str, "Variable"]


@dataclass(frozen=True, eq=False)
class Variable:
    """Values with the names of their axes."""

    dims: tuple[str, ...]
    values: np.ndarray
    constant: bool = False  # known beforehand, like the sample numbers

    @property
    def sampled(self) -> bool:
        """Whether there is one value per sample; others are coordinates."""
        return self.dims[:1] == (SAMPLE,) and not self.constant


def labelled(results: Any, count: int, arm: Arm) -> Variables:
    """The checked variables of a chunk: the first axis of each is "sample", or none is."""
    if not isinstance(results, Mapping) or not results:
        raise InputError(f"a study's function must return a dict of arrays by name, got {type(results).__name__}")
    return {str(name): _variable(str(name), x, count, arm) for name, x in results.items()}


def _variable(name: str, given: Any, count: int, arm: Arm) -> Variable:
    dims, values = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    array = np.asarray(values)
    if array.dtype == object:
        raise InputError(f"{name}: expected an array of numbers, got objects")
    if dims is None:
        dims = [SAMPLE, *(f"{name}_{k}" for k in range(1, array.ndim))]
        if array.ndim > 1 and array.shape[-1] == arm.n:
            dims[-1] = "joint"
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    if len(dims) != array.ndim or (dims[:1] == (SAMPLE,) and array.shape[0] != count) or SAMPLE in dims[1:]:
        raise InputError(
            f"{name}: expected ({count}, ...) values, one per sample, and a name for each axis; got shape "
            f"{array.shape} with axes {dims}"
        )
    return Variable(dims, array)


def coordinates(arm: Arm) -> Variables:
    """The names of the joints as a coordinate."""
    return {"joint": Variable(("joint",), np.array(arm.joint_names, dtype=np.str_))}


def dataset(variables: Variables, coords: Variables, attributes: Mapping[str, Any]) -> Any:
    """An xarray Dataset, with the coordinates whose axes a variable uses."""
    xarray = needed("xarray")
    used = {dim for v in variables.values() for dim in v.dims}
    return xarray.Dataset(
        {name: (v.dims, v.values) for name, v in variables.items()},
        coords={name: (v.dims, v.values) for name, v in coords.items() if set(v.dims) <= used},
        attrs=dict(attributes),
    )


def require(where: str | None, cluster: bool = False) -> None:
    """Raise an error, before any work is done, if a package is missing that a sweep into `where` will need."""
    from importlib.util import find_spec

    wanted = ["pyarrow"] if (where or "").endswith(".parquet") else ["xarray", *(["zarr"] if where else [])]
    wanted += (["fsspec"] if "://" in (where or "") else []) + (["distributed"] if cluster else [])
    if missing := [name for name in wanted if find_spec(name) is None]:
        raise InputError(f'this needs {", ".join(missing)}; install with: pip install "armdyn[scale]"')


def needed(module: str) -> Any:
    """Import a module of the extra `scale`, or raise an error that says how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f'this needs {module}; install it with: pip install "armdyn[scale]"') from error
