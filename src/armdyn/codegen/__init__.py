"""Code generation. Backends: `llvm` (machine code), `numpy` (NumPy source), `python` (the algorithm run on arrays)."""

BACKENDS = ("llvm", "numpy", "python")
