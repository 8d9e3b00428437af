"""Arrays of other libraries: DLPack, __array__, pandas, xarray, Dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import armdyn
from armdyn.errors import InputError
from pages import ROOT, blocks

ARM = armdyn.load("panda")
Q = np.random.default_rng(0).uniform(-1, 1, (5, 7))


class ByDlpack:
    """An array that speaks nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class ByArray:
    """An array that NumPy can ask for its values."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("kind", [ByDlpack, ByArray, pd.DataFrame, xr.DataArray, np.ndarray.tolist])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_an_array_of_another_library_is_read(kind, backend):
    k = ARM.kernel("inverse_dynamics", backend=backend)
    found = k(kind(Q), Q, kind(Q))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, k(Q, Q, Q))


def test_a_series_is_one_configuration():
    row = pd.DataFrame(Q, columns=[f"joint{k}" for k in range(7)]).iloc[2]
    np.testing.assert_array_equal(ARM.gravity_load(row), ARM.gravity_load(Q[2]))


def test_a_wrong_shape_is_still_named():
    with pytest.raises(InputError, match=r"expects q of shape \(\.\.\., 7\), got \(5, 6\)"):
        ARM.gravity_load(pd.DataFrame(Q[:, :6]))


def test_the_recipe_of_the_documentation():
    (recipe,) = (block for block in blocks(ROOT / "docs" / "howto" / "bridges.md", "python") if "apply_ufunc" in block)
    exec(compile(recipe, "bridges.md", "exec"), {})
