"""Online identification: recursive estimation with the model of `identify`."""

from armdyn.identification.online.estimator import OnlineEstimator
from armdyn.identification.online.information import Information

__all__ = ["Information", "OnlineEstimator"]
