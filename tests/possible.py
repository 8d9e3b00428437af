"""Random inputs of every quantity: whatever a port is called, numbers that it takes."""

from __future__ import annotations

import numpy as np


def possible(port: str, x: np.ndarray) -> np.ndarray:
    """Random numbers around 0, at most about 2, as they are; of a body's mass and inertia made such that one can be."""
    if port == "mass":
        return 0.1 + np.abs(x)
    return np.array([1.0, 1.1, 1.2, 0.0, 0.0, 0.0]) + 0.05 * x if port == "inertia" else x
