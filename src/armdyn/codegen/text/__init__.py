"""Programs as source text: C99 and NumPy."""
