"""Composite bodies: links i to n as one rigid body, seen from frame i; natural and minimal parameters."""
