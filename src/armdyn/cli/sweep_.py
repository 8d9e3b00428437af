"""`armdyn sweep STUDY.toml`: a study of many samples, resumed where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from armdyn.cli.common import AsJson, Page, Quiet, console, print_json, progress, table

EXAMPLE = "Example: armdyn sweep robustness.toml -o robustness.zarr --workers 2"
SHOWN = 24  # rows of the summary


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (.toml), see docs/howto/scaling.md.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Zarr folder or URL; .parquet: a table.")] = "",
    threads: Annotated[int | None, typer.Option(help="Local threads; default: one per processor.")] = None,
    workers: Annotated[int | None, typer.Option(help="Start a local Dask cluster of this many processes.")] = None,
    scheduler: Annotated[str, typer.Option(help="The address of a Dask scheduler: tcp://host:8786.")] = "",
    report: Page = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Run a study in chunks, on local threads or a Dask cluster; chunks already stored are not recomputed."""
    from armdyn.errors import InputError
    from armdyn.sweeps import read_study, sweep
    from armdyn.sweeps.reductions import require

    out = console()
    with progress("reading the study", quiet or as_json) as update:
        asked = read_study(study)
        where = output or asked.out
        if report is not None and str(where).rstrip("/").endswith(".parquet"):
            raise InputError("--report shows labelled arrays, not a table; give -o a name without .parquet")
        require(where, cluster=workers is not None or bool(scheduler))
        with _cluster(workers, scheduler) as client:
            if client is not None and not (quiet or as_json):
                out.print(f"dashboard: {client.dashboard_link or 'none'}", highlight=False, markup=False)
            found = sweep(
                asked.arm, asked.compute, asked.samples, asked.reduce, where, client, chunk=asked.chunk,
                threads=threads, progress=lambda done, total, text: update(done, total, text),
            )  # fmt: skip
    if report is not None:
        from armdyn.pages.results import sweep_page
        from armdyn.sweeps.ready import units

        sweep_page(found, f"{asked.study} of {asked.arm.name}", units(asked.arm)).save(report)
    if as_json:
        print_json(_data(found, where))
    elif not quiet:
        _show(found, asked, where, out)


@contextmanager
def _cluster(workers: int | None, scheduler: str) -> Iterator[Any]:
    """A Dask client, or None for local threads."""
    from armdyn.errors import InputError
    from armdyn.sweeps.reductions import needed

    if workers is None and not scheduler:
        yield None
        return
    if workers is not None and (scheduler or workers < 1):
        raise InputError("give --workers a number from 1 on, or --scheduler an address, not both")
    distributed = needed("distributed")
    if scheduler:
        try:
            with distributed.Client(scheduler, timeout="10s") as client:
                yield client
        except OSError as error:
            raise InputError(f"no Dask scheduler answers at {scheduler}: {error}") from None
        return
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def _data(found: Any, where: str | None) -> dict[str, Any]:
    """The values of reduced variables; the axes of all."""
    if not hasattr(found, "data_vars"):
        return {"out": where, "columns": list(found.schema.names), "rows": found.count_rows()}
    variables = {name: list(x.dims) for name, x in found.data_vars.items()}
    small = {str(k): x.values.tolist() for k, x in found.variables.items() if "sample" not in x.dims}
    return {"out": where, "attributes": dict(found.attrs), "axes": variables, "values": small}


def _show(found: Any, asked: Any, where: str | None, out: Any) -> None:
    count = asked.samples if isinstance(asked.samples, int) else len(asked.samples)
    out.print(f"{asked.study} of {asked.arm.name}: {count} samples", highlight=False)
    if not hasattr(found, "data_vars"):
        out.print(f"{found.count_rows()} rows of {', '.join(found.schema.names[:8])}, …", highlight=False, markup=False)
    else:
        out.print(table("Results (SI)", ["variable", "axes", "smallest", "mean", "largest"], _rows(found), left=2))
    if where:
        out.print(f"wrote {where}", markup=False, highlight=False, soft_wrap=True)


def _rows(found: Any) -> list[list[Any]]:
    import numpy as np

    rows = []
    for name, x in list(found.data_vars.items())[:SHOWN]:
        values = np.asarray(x.values, dtype=float)
        there = values[np.isfinite(values)]
        numbers = [there.min(), there.mean(), there.max()] if there.size else [None] * 3
        shape = ", ".join(f"{dim} {size}" for dim, size in x.sizes.items())
        rows.append([str(name), shape, *(None if v is None else float(v) for v in numbers)])
    return rows
