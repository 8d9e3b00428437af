from __future__ import annotations

import os

import pytest
from hypothesis import settings

# A cache of its own, so that a test run neither uses nor fills the user's.
os.environ.setdefault("ARMDYN_CACHE", os.path.join(os.path.dirname(__file__), "..", ".pytest_cache", "kernels"))

# One thread of BLAS per process: matrices are small here, and threads that wait for one another spin, which took up to
# twenty times the processor time of a test. Set before NumPy is imported, and inherited by the tests' own processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run, however slow the machine.
settings.register_profile("armdyn", deadline=None, derandomize=True)
settings.load_profile("armdyn")


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(12345)
