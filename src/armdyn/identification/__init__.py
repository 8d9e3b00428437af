"""Parameter identification from logs: reading logs, signal processing, estimators, excitation trajectories."""

from armdyn.errors import former_names
from armdyn.identification.excitation import Excitation, excite
from armdyn.identification.identify import identify
from armdyn.identification.log import Log
from armdyn.identification.online import OnlineEstimator
from armdyn.identification.payload import Gains, Payload, identify_gains, identify_payload
from armdyn.identification.result import Estimate, Prediction

__all__ = [
    "Estimate",
    "Excitation",
    "Gains",
    "Log",
    "OnlineEstimator",
    "Payload",
    "Prediction",
    "excite",
    "identify",
    "identify_gains",
    "identify_payload",
]

__getattr__ = former_names(__name__, {"Comparison": "Prediction"})
