from __future__ import annotations

import os

import pytest

# A cache of its own, so that a test run neither uses nor fills the user's.
os.environ.setdefault("ARMDYN_CACHE", os.path.join(os.path.dirname(__file__), "..", ".pytest_cache", "kernels"))


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(12345)
