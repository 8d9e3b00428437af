"""`armdyn selftest`: whether this installation computes correctly on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from armdyn.cli.common import AsJson, Quiet, console, print_json, progress, table

EXAMPLE = "Example: armdyn selftest"

Arms = Annotated[list[str] | None, typer.Argument(metavar="ARM …", help="Arms of the catalogue; default: all.")]


def command(arms: Arms = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Compare compiled kernels with a slow reference on this machine; exit code 1 if anything differs.

    It takes about a minute and needs no other library: catalogue arms, the path without the compiler, equal bits alone
    and in batches, the cache, a simulation.
    """
    from armdyn.errors import choose
    from armdyn.files import catalogue
    from armdyn.studies.selftest import checks, run

    names = [choose("arm", name, catalogue()) for name in arms or catalogue()]
    outcomes = []
    total = checks(names)
    with progress("checking", quiet or as_json) as update:
        update(0, len(total), total[0][0])
        for k, outcome in enumerate(run(names)):
            outcomes.append(outcome)
            following = total[min(k + 1, len(total) - 1)][0]
            update(k + 1, len(total), following)
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        print_json({"passed": passed, "checks": [vars(outcome) for outcome in outcomes]})
    else:
        rows = [[o.name, "passed" if o.passed else "FAILED", o.detail, f"{o.seconds:.1f}"] for o in outcomes]
        out = console()
        out.print(table("Self-test", ["check", "", "found", "time [s]"], rows, left=3, prose=[2]))
        failed = sum(not outcome.passed for outcome in outcomes)
        out.print(f"{failed} of {len(outcomes)} checks failed" if failed else f"all {len(outcomes)} checks passed")
    if not passed:
        raise typer.Exit(1)
