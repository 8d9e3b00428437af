"""Composite bodies: links i to n as one rigid body in frame i, with natural or minimal parameters."""
