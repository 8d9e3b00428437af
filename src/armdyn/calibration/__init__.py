"""Calibration: the geometry of an arm from measured tool poses, points, a touched plane or a ball bar."""

from armdyn.calibration.measured import Poses
from armdyn.calibration.plan import Plan, calibration_poses
from armdyn.calibration.result import Calibration
from armdyn.calibration.run import calibrate

__all__ = ["Calibration", "Plan", "Poses", "calibrate", "calibration_poses"]
