"""Simulation: what an arm does under torques, controllers and gravity; motions to follow."""

from armdyn.simulation.references import Reference, fourier, quintic, straight_line, trapezoidal
from armdyn.simulation.simulate import simulate
from armdyn.simulation.torque import ComputedTorque, Feedforward, PDGravity, Sampled
from armdyn.simulation.trajectory import Trajectory

__all__ = [
    "ComputedTorque",
    "Feedforward",
    "PDGravity",
    "Reference",
    "Sampled",
    "Trajectory",
    "fourier",
    "quintic",
    "simulate",
    "straight_line",
    "trapezoidal",
]
