"""Code generator for straight-line code on AVX2: instruction selection, list scheduling, register allocation."""
