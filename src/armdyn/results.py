"""What all results share: a table with units, a summary, a page, a file."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from armdyn import html
from armdyn.errors import InputError


@dataclass(frozen=True)
class ResultTable:
    """Rows under columns whose names have the units; notebooks show it, `print` prints it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> ResultTable:
        """A table of any sequences."""
        return cls(caption, tuple(columns), tuple(map(tuple, rows)))

    def __str__(self) -> str:
        cells = [list(self.columns), *([html.number(x) for x in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(x.ljust(w) if k == 0 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
            for row in cells
        ]
        return "\n".join([self.caption, *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        return html.table(self.caption, self.columns, self.rows)

    def csv(self) -> str:
        """The table as CSV, numbers with all their digits."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()


class Result:
    """Base class of results: a subclass has a `table`, from which the rest follows unless it has something better."""

    def table(self) -> ResultTable:
        """The result as a table with units."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def summary(self) -> str:
        """The result as text."""
        return str(self.table()) if type(self).__str__ is object.__str__ else str(self)

    def plot(self) -> Any:
        """The result as a page, which notebooks show and `save` writes to a file."""
        table = self.table()
        view = import_module("armdyn.pages.motion").View  # pages are above results in the layers
        style = "body{font:15px sans-serif;margin:2em}td,th{padding:.2em .7em;text-align:right}caption{margin:1em 0}"
        head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{type(self).__name__}</title>'
        return view(f"{head}<style>{style}</style></head><body>{table._repr_html_()}</body></html>", table.caption)

    def save(self, path: str | os.PathLike[str]) -> Any:
        """Write the table as .csv or .json, or the page as .html."""
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        table = self.table()
        if suffix == ".html":
            return self.plot().save(path)
        if suffix == ".csv":
            text = table.csv()
        elif suffix == ".json":
            rows = [[x.item() if hasattr(x, "item") else x for x in row] for row in table.rows]
            known = {"caption": table.caption, "columns": table.columns, "rows": rows}
            text = json.dumps(known, indent=1, ensure_ascii=False) + "\n"
        else:
            raise InputError(f"a {type(self).__name__} is saved as .csv, .json or .html, got {os.fspath(path)!r}")
        return import_module("armdyn.files.text").write_text(path, text)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
