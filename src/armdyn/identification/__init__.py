"""Parameter identification from logs: reading logs, signal processing, estimators, excitation trajectories."""

from armdyn.identification.estimate.drive_gains import identify_gains
from armdyn.identification.estimate.gains import Gains
from armdyn.identification.estimate.payload import Payload, identify_payload
from armdyn.identification.estimate.result import Comparison, Estimate
from armdyn.identification.estimate.run import identify
from armdyn.identification.excitation import Excitation, excite
from armdyn.identification.log.log import Log
from armdyn.identification.online.estimator import OnlineEstimator

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
