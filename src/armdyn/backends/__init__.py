"""From graphs to code: LLVM machine code, C99, NumPy text."""
