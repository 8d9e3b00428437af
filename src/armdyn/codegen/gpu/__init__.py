"""Programs for graphics processors: one thread per configuration, everything in registers, single precision."""
