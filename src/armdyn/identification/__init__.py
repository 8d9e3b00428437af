"""From a robot's log to parameters: logs, signals, estimators, excitation."""

from armdyn.identification.estimate import Comparison, Estimate
from armdyn.identification.excitation import Excitation, excite
from armdyn.identification.gains import Gains, identify_gains
from armdyn.identification.log import Log
from armdyn.identification.payload import Payload, identify_payload
from armdyn.identification.run import identify

__all__ = [
    "Comparison",
    "Estimate",
    "Excitation",
    "Gains",
    "Log",
    "Payload",
    "excite",
    "identify",
    "identify_gains",
    "identify_payload",
]
