"""`python -m armdyn`: the command line."""

from armdyn.cli import main

main()
