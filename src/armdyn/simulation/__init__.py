"""Simulation: integrators, torques, trajectories to follow."""
