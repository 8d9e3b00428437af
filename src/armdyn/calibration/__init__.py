"""Kinematic calibration: an arm's geometry from measured tool poses or points, plane contacts, or a ball bar."""

from armdyn.calibration.measured import Poses
from armdyn.calibration.plan import Plan, calibration_poses
from armdyn.calibration.result import Calibration
from armdyn.calibration.run import calibrate

__all__ = ["Calibration", "Plan", "Poses", "calibrate", "calibration_poses"]
