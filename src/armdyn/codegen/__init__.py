"""Code generation. Backends: `llvm` (machine code), `numpy` (NumPy source), `python` (the algorithm run on arrays).

`gpu` is apart from them: it computes in single precision, on arrays that may be in a device's memory.
"""

BACKENDS = ("llvm", "numpy", "python")
DEVICES = "gpu"
