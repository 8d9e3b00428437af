"""armdyn: exact, minimal and fast dynamics for robot arms."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; a test compares it with the table below
    from armdyn.arm import Arm
    from armdyn.building import Builder, from_screws
    from armdyn.calibration import Calibration, Plan, Poses, calibrate, calibration_poses
    from armdyn.comparison import compare
    from armdyn.control.controller import controller
    from armdyn.deployment.deploy import deploy
    from armdyn.deployment.pipeline import pipeline
    from armdyn.errors import ArmdynError
    from armdyn.files import catalogue
    from armdyn.formulations import methods
    from armdyn.identification.excitation import Excitation, excite
    from armdyn.identification.identify import identify
    from armdyn.identification.log import Log
    from armdyn.identification.online import OnlineEstimator
    from armdyn.identification.payload import identify_gains, identify_payload
    from armdyn.identification.result import Estimate
    from armdyn.identification.servo import identify_servo
    from armdyn.identification.servo_result import ServoEstimate
    from armdyn.kernels.kernel import set_threads
    from armdyn.loading import from_dh, generic_arm, load
    from armdyn.motion.time_optimal import time_optimal
    from armdyn.parameters import equivalence, extended_parameters, minimal_combinations
    from armdyn.programs.cost import cost
    from armdyn.references import citation
    from armdyn.simulation import Trajectory
    from armdyn.simulation.simulate import simulate
    from armdyn.simulation.simulator import Simulator
    from armdyn.studies.identifiability import rank_report
    from armdyn.sweeps import sweep
    from armdyn.uncertainty import Bound, Normal, Uncertain, Uniform, bound
    from armdyn.uncertainty.bounds import RoundingError, rounding_error


__version__ = "0.1.0"
__all__ = [
    "Arm",
    "ArmdynError",
    "Bound",
    "Builder",
    "Calibration",
    "Estimate",
    "Excitation",
    "Log",
    "Normal",
    "OnlineEstimator",
    "Plan",
    "Poses",
    "RoundingError",
    "ServoEstimate",
    "Simulator",
    "Trajectory",
    "Uncertain",
    "Uniform",
    "bound",
    "calibrate",
    "calibration_poses",
    "catalogue",
    "citation",
    "compare",
    "controller",
    "cost",
    "deploy",
    "equivalence",
    "excite",
    "extended_parameters",
    "from_dh",
    "from_screws",
    "generic_arm",
    "identify",
    "identify_gains",
    "identify_payload",
    "identify_servo",
    "load",
    "methods",
    "minimal_combinations",
    "pipeline",
    "rank_report",
    "rounding_error",
    "set_threads",
    "simulate",
    "sweep",
    "time_optimal",
]


# Imported on first access, because their imports take time: `import armdyn` by itself loads nothing else.
_LAZY = {
    "Arm": "armdyn.arm",
    "ArmdynError": "armdyn.errors",
    "catalogue": "armdyn.files",
    "cost": "armdyn.programs.cost",
    "Builder": "armdyn.building",
    "from_dh": "armdyn.loading",
    "from_screws": "armdyn.building",
    "generic_arm": "armdyn.loading",
    "load": "armdyn.loading",
    "methods": "armdyn.formulations",
    "set_threads": "armdyn.kernels.kernel",
    "equivalence": "armdyn.parameters",
    "extended_parameters": "armdyn.parameters",
    "minimal_combinations": "armdyn.parameters",
    "rank_report": "armdyn.studies.identifiability",
    "citation": "armdyn.references",
    "compare": "armdyn.comparison",
    "controller": "armdyn.control.controller",
    "Bound": "armdyn.uncertainty",
    "Normal": "armdyn.uncertainty",
    "Uncertain": "armdyn.uncertainty",
    "Uniform": "armdyn.uncertainty",
    "sweep": "armdyn.sweeps",
    "time_optimal": "armdyn.motion.time_optimal",
    "bound": "armdyn.uncertainty",
    "deploy": "armdyn.deployment.deploy",
    "pipeline": "armdyn.deployment.pipeline",
    "RoundingError": "armdyn.uncertainty.bounds",
    "rounding_error": "armdyn.uncertainty.bounds",
    "simulate": "armdyn.simulation.simulate",
    "Simulator": "armdyn.simulation.simulator",
    "Calibration": "armdyn.calibration",
    "Plan": "armdyn.calibration",
    "Poses": "armdyn.calibration",
    "calibrate": "armdyn.calibration",
    "calibration_poses": "armdyn.calibration",
    "Trajectory": "armdyn.simulation",
    "Excitation": "armdyn.identification.excitation",
    "Estimate": "armdyn.identification.result",
    "Log": "armdyn.identification.log",
    "OnlineEstimator": "armdyn.identification.online",
    "excite": "armdyn.identification.excitation",
    "identify": "armdyn.identification.identify",
    "identify_gains": "armdyn.identification.payload",
    "identify_payload": "armdyn.identification.payload",
    "identify_servo": "armdyn.identification.servo",
    "ServoEstimate": "armdyn.identification.servo_result",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value
    if not name.startswith("_") and find_spec(f"armdyn.{name}") is not None:  # armdyn.control, armdyn.simulation, ...
        return import_module(f"armdyn.{name}")
    raise AttributeError(f"module 'armdyn' has no attribute {name!r}{'' if name.startswith('_') else _hint(name)}")


def _hint(name: str) -> str:
    """What a name that is not here may mean: an attribute of an arm, or a public name."""
    from armdyn.arm import Arm
    from armdyn.errors import did_you_mean
    from armdyn.names import meant

    known = meant(name) or name
    if hasattr(Arm, known):
        return f"; an arm has it: armdyn.load(...).{known}"
    return did_you_mean(name, list(__all__))


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
