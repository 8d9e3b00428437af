"""Where an arm comes from and goes to."""
