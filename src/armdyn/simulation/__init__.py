"""Simulation of arms under torques, controllers and gravity, and reference motions."""

from armdyn.simulation.actuators import Actuators
from armdyn.simulation.controllers import PD, ComputedTorque, Feedforward, PDGravity
from armdyn.simulation.digital import Digital
from armdyn.simulation.plants import Plants
from armdyn.simulation.references import Reference, fourier, quintic, straight_line, trapezoidal
from armdyn.simulation.sampled_loop import holding
from armdyn.simulation.simulate import simulate
from armdyn.simulation.simulator import Simulator
from armdyn.simulation.torque import Controller, Drive, Sampled
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
