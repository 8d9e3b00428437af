"""Kinematics: poses and Jacobians in base axes."""
