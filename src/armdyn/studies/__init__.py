"""Studies: the papers' tables reproduced by execution, operation counts, regressor rank, speed, the Puma line."""
