"""Machine code in this process: the JIT loader, NumPy's gufuncs, CPython's vectorcall, the cache on disk."""
