"""armdyn: exact, minimal and fast dynamics for robot arms."""

from __future__ import annotations

import importlib
import os
import sys
from _thread import get_ident
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; a test compares it with the table below
    from armdyn.arm import Arm, from_dh, generic_arm, load
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
    from armdyn.identification.normal_equations import normal_equations
    from armdyn.identification.online import OnlineEstimator
    from armdyn.identification.payload import identify_gains, identify_payload
    from armdyn.identification.result import Estimate
    from armdyn.identification.servo import identify_servo
    from armdyn.identification.servo_result import ServoEstimate
    from armdyn.kernels.kernel import set_threads
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


__version__ = "0.2.0"
# In groups, as the documentation lists them.
__all__ = [  # noqa: RUF022
    # Arms
    "load",
    "from_dh",
    "from_screws",
    "compare",
    "Builder",
    "catalogue",
    "generic_arm",
    "Arm",
    # Kernels
    "set_threads",
    # Formulations and costs
    "methods",
    "cost",
    "citation",
    # Minimal parameters
    "equivalence",
    "minimal_combinations",
    "extended_parameters",
    "rank_report",
    # Bounds
    "bound",
    "Bound",
    "rounding_error",
    "RoundingError",
    # Uncertainty
    "Uncertain",
    "Normal",
    "Uniform",
    # Studies in chunks
    "sweep",
    # Simulation
    "simulate",
    "Simulator",
    "Trajectory",
    # Time-optimal motion
    "time_optimal",
    # Controllers
    "controller",
    # Deployment
    "deploy",
    "pipeline",
    # Identification
    "Log",
    "identify",
    "Estimate",
    "OnlineEstimator",
    "normal_equations",
    "identify_payload",
    "identify_gains",
    "identify_servo",
    "ServoEstimate",
    "excite",
    "Excitation",
    # Calibration
    "calibrate",
    "Calibration",
    "Poses",
    "calibration_poses",
    "Plan",
    # Errors
    "ArmdynError",
]


# Imported on first access, because their imports take time: `import armdyn` by itself loads nothing else.
_LAZY = {
    "load": "armdyn.arm",
    "from_dh": "armdyn.arm",
    "from_screws": "armdyn.building",
    "compare": "armdyn.comparison",
    "Builder": "armdyn.building",
    "catalogue": "armdyn.files",
    "generic_arm": "armdyn.arm",
    "Arm": "armdyn.arm",
    "set_threads": "armdyn.kernels.kernel",
    "methods": "armdyn.formulations",
    "cost": "armdyn.programs.cost",
    "citation": "armdyn.references",
    "equivalence": "armdyn.parameters",
    "minimal_combinations": "armdyn.parameters",
    "extended_parameters": "armdyn.parameters",
    "rank_report": "armdyn.studies.identifiability",
    "bound": "armdyn.uncertainty",
    "Bound": "armdyn.uncertainty",
    "rounding_error": "armdyn.uncertainty.bounds",
    "RoundingError": "armdyn.uncertainty.bounds",
    "Uncertain": "armdyn.uncertainty",
    "Normal": "armdyn.uncertainty",
    "Uniform": "armdyn.uncertainty",
    "sweep": "armdyn.sweeps",
    "simulate": "armdyn.simulation.simulate",
    "Simulator": "armdyn.simulation.simulator",
    "Trajectory": "armdyn.simulation",
    "time_optimal": "armdyn.motion.time_optimal",
    "controller": "armdyn.control.controller",
    "deploy": "armdyn.deployment.deploy",
    "pipeline": "armdyn.deployment.pipeline",
    "Log": "armdyn.identification.log",
    "identify": "armdyn.identification.identify",
    "Estimate": "armdyn.identification.result",
    "normal_equations": "armdyn.identification.normal_equations",
    "OnlineEstimator": "armdyn.identification.online",
    "identify_payload": "armdyn.identification.payload",
    "identify_gains": "armdyn.identification.payload",
    "identify_servo": "armdyn.identification.servo",
    "ServoEstimate": "armdyn.identification.servo_result",
    "excite": "armdyn.identification.excitation",
    "Excitation": "armdyn.identification.excitation",
    "calibrate": "armdyn.calibration",
    "Calibration": "armdyn.calibration",
    "Poses": "armdyn.calibration",
    "calibration_poses": "armdyn.calibration",
    "Plan": "armdyn.calibration",
    "ArmdynError": "armdyn.errors",
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


def _finish_imports() -> None:
    """In a forked child: execute the modules that other threads were importing, the innermost first.

    Those threads do not exist here, so that their locks would be held, and their modules half made, for ever. CPython
    renews only the lock around all imports, not that of each module.
    """
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    own = {name for name, kept in list(locks.items()) if getattr(kept(), "owner", None) == get_ident()}
    begun = [name for name in list(sys.modules) if name in locks and name not in own]
    for name in set(locks) - own:
        del locks[name]
    for name in reversed(begun):
        spec: Any = getattr(sys.modules[name], "__spec__", None)
        if getattr(spec, "_initializing", False) and spec.loader is not None:
            try:
                spec.loader.exec_module(sys.modules[name])
                spec._initializing = False
            except Exception:  # as an import that fails: who needs the module is told why
                del sys.modules[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_finish_imports)
