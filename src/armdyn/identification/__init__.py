"""Parameter identification from logs: reading logs, signal processing, estimators, excitation trajectories."""

from armdyn.identification.excitation import Excitation, excite
from armdyn.identification.identify import identify
from armdyn.identification.log import Log
from armdyn.identification.online import OnlineEstimator
from armdyn.identification.payload import Gains, Payload, identify_gains, identify_payload
from armdyn.identification.result import Comparison, Estimate

__all__ = [
    "Comparison",
    "Estimate",
    "Excitation",
    "Gains",
    "Log",
    "OnlineEstimator",
    "Payload",
    "excite",
    "identify",
    "identify_gains",
    "identify_payload",
]
