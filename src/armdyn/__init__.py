"""armdyn: exact, minimal and fast dynamics for robot arms."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from armdyn.arm import Arm
from armdyn.chain.samples import generic_chain
from armdyn.errors import ArmdynError, choose
from armdyn.files import catalogue
from armdyn.formulations import QUANTITIES
from armdyn.kernels.threads import set_threads
from armdyn.loading import from_dh, load
from armdyn.programs.cost import cost

__version__ = "0.1.0"
__all__ = [
    "Arm",
    "ArmdynError",
    "Bound",
    "Calibration",
    "Estimate",
    "Excitation",
    "Log",
    "Normal",
    "OnlineEstimator",
    "Plan",
    "Poses",
    "RoundingError",
    "Trajectory",
    "Uncertain",
    "Uniform",
    "bound",
    "calibrate",
    "calibration_poses",
    "catalogue",
    "citation",
    "controller",
    "cost",
    "deploy",
    "equivalence",
    "excite",
    "extended_parameters",
    "from_dh",
    "generic_arm",
    "identify",
    "identify_gains",
    "identify_payload",
    "load",
    "methods",
    "minimal_combinations",
    "pipeline",
    "rank_report",
    "rounding_error",
    "set_threads",
    "simulate",
    "sweep",
]


def generic_arm(kinds: str, seed: int = 0) -> Arm:
    """An arm with random geometry; `kinds` is a string of R (revolute) and P (prismatic)."""
    return Arm(f"generic_{kinds}_{seed}", generic_chain(kinds, seed), snap=0.0, source="random geometry")


def methods(quantity: str, arm: Arm | None = None) -> tuple[str, ...]:
    """The keys of a quantity's formulations; with an arm, only of those that apply to it."""
    found = QUANTITIES[choose("quantity", quantity, QUANTITIES)].methods
    return tuple(m.key for m in found if arm is None or m.serves(arm.chain))


# Imported on first access, because their imports take time.
_LAZY = {
    "equivalence": "armdyn.parameters",
    "extended_parameters": "armdyn.parameters",
    "minimal_combinations": "armdyn.parameters",
    "rank_report": "armdyn.studies.identifiability",
    "citation": "armdyn.references",
    "controller": "armdyn.control",
    "Bound": "armdyn.uncertainty",
    "Normal": "armdyn.uncertainty",
    "Uncertain": "armdyn.uncertainty",
    "Uniform": "armdyn.uncertainty",
    "sweep": "armdyn.sweeps",
    "bound": "armdyn.uncertainty",
    "deploy": "armdyn.deployment",
    "pipeline": "armdyn.deployment.pipeline",
    "RoundingError": "armdyn.uncertainty",
    "rounding_error": "armdyn.uncertainty",
    "simulate": "armdyn.simulation",
    "Calibration": "armdyn.calibration",
    "Plan": "armdyn.calibration",
    "Poses": "armdyn.calibration",
    "calibrate": "armdyn.calibration",
    "calibration_poses": "armdyn.calibration",
    "Trajectory": "armdyn.simulation",
    "Excitation": "armdyn.identification.excitation.design",
    "Estimate": "armdyn.identification.estimate.result",
    "Log": "armdyn.identification.log.log",
    "OnlineEstimator": "armdyn.identification.online.estimator",
    "excite": "armdyn.identification.excitation.design",
    "identify": "armdyn.identification.estimate.run",
    "identify_gains": "armdyn.identification.estimate.drive_gains",
    "identify_payload": "armdyn.identification.estimate.payload",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'armdyn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
