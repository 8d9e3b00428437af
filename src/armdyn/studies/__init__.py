"""Studies: the papers' tables executed, costs, rank, speed, the PUMA line."""
