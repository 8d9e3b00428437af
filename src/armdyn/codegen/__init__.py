"""Graph -> code: `llvm` (machine code), `numpy` (readable text), C99; `python` is the plain algorithm over columns."""

BACKENDS = ("llvm", "numpy", "python")
