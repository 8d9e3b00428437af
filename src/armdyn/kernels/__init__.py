"""Chain + quantity + formulation + backend -> `kernel.Kernel`."""
