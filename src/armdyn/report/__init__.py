"""Reports on an arm: one self-contained HTML page."""
