"""Identification while the arm moves: the same model recursively."""

from armdyn.identification.online.estimator import OnlineEstimator
from armdyn.identification.online.information import Information

__all__ = ["Information", "OnlineEstimator"]
