"""Simulation of arms under torques, controllers and gravity, and reference motions."""

from armdyn.simulation.digital import Actuators, Digital
from armdyn.simulation.drives import (
    PD,
    ComputedTorque,
    Controller,
    Drive,
    Feedforward,
    PDGravity,
    Reference,
    Sampled,
    fourier,
    quintic,
    straight_line,
    trapezoidal,
)
from armdyn.simulation.programs import Plants
from armdyn.simulation.sampled_loop import holding
from armdyn.simulation.simulate import simulate
from armdyn.simulation.simulator import Simulator
from armdyn.simulation.trajectory import Trajectory

__all__ = [
    "PD",
    "Actuators",
    "ComputedTorque",
    "Controller",
    "Digital",
    "Drive",
    "Feedforward",
    "PDGravity",
    "Plants",
    "Reference",
    "Sampled",
    "Simulator",
    "Trajectory",
    "fourier",
    "holding",
    "quintic",
    "simulate",
    "straight_line",
    "trapezoidal",
]
