"""Forward dynamics: one file a formulation; the registry is the tuple METHODS."""
