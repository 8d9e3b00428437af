"""Chain + quantity + formulation + backend -> Kernel."""

from armdyn.kernels.kernel import Kernel

__all__ = ["Kernel"]
