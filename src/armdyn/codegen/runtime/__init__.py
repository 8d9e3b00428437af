"""Machine code at run time: the JIT loader, NumPy gufuncs, CPython's vectorcall, the cache on disk."""
