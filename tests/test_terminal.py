"""In a terminal of 80 columns no word is cut, no line too long, and numbers stand beside names and units."""

from __future__ import annotations

import functools
import re

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from armdyn.cli import app
from armdyn.cli.common import PlainConsole, count, table
from armdyn.html import number
from armdyn.studies import puma_line

RUN = CliRunner()
UNBOUNDED = 2000
COMMANDS = (
    "list",
    "show puma560",
    "show scara",
    "show panda_hand",
    "show planar3 --floating",
    "check puma560",
    "parameters puma560",
    "parameters baxter --symbolic",
    "cost panda_hand --quantity inertia_matrix --quantity forward_dynamics",
    "cost planar3 --controller all",
    "tables --no-compiled --table VI",
    "tables --no-compiled --table VIII",
    "eval puma560 inertia_matrix",
    "eval panda inertia_matrix",
    "eval panda_hand inertia_matrix",
    "eval panda gravity_load",
    "eval panda pose",
    "eval panda jacobian",
    "eval planar3 bias --floating",
    "eval panda regressor",
    "eval puma560 kinetic_energy --qd 1,1,1,1,1,1",
    "simulate puma560 --duration 0.05",
    "simulate scara --duration 0.05",
    "simulate panda --duration 0.02 --tau 87,0,0,0,0,0,0",
    "study puma-line",
    "bound scara gravity_load --seconds 0.1",
    "bench planar3 --seconds 0",
    "cache show",
)
MEASURED = ("study", "bench", "bound", "cache")  # their numbers differ from run to run


def printed(command, width):
    result = RUN.invoke(app, command.split(), env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def words(text, command):
    found = {word for word in re.split(r"[\s─]+", text) if word}
    return {re.sub(r"[\d.e+-]+", "#", word) for word in found} if command.startswith(MEASURED) else found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_is_cut(command, monkeypatch):
    monkeypatch.setattr(puma_line, "data", functools.cache(puma_line.data))  # simulated once for all widths
    whole = words(printed(command, UNBOUNDED), command)
    for width in (80, 120):
        text = printed(command, width)
        assert not [line for line in text.splitlines() if cell_len(line) > width]
        assert words(text, command) <= whole
        assert not re.search(r"(?<![\w.])-0(\.0*)?(?![\d.e\w])", text), "a minus before zero"


def drawn(shown, width):
    out = PlainConsole(width=width, no_color=True)
    with out.capture() as capture:
        out.print(shown)
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def test_a_table_is_printed_whole_then_transposed_then_in_blocks():
    columns, rows = ["joint", "alpha", "beta", "gamma", "delta"], [["a" * 8, 1.0, 2, 3, 4], ["b" * 8, 5, 6, 7, 8]]
    assert drawn(table("", columns, rows), 60)[0].split() == columns
    assert drawn(table("", columns, rows), 34)[0].split() == ["joint", "aaaaaaaa", "bbbbbbbb"]
    blocks = [line.split() for line in drawn(table("", columns, rows, keys=2), 34)]
    assert [line for line in blocks if line[0] == "aaaaaaaa"] == [["aaaaaaaa", "1", "2", "3"], ["aaaaaaaa", "1", "4"]]


def test_a_wide_table_is_divided_before_a_group():
    columns, row = ["joint", "aaaaaa", "bbbbbb", "cccccc", "dddddd"], ["long_name_of_a_link", "1", "2", "3", "4"]
    heads = [
        line.split()[1:] for line in drawn(table("", columns, [row] * 9, groups=[2]), 48) if line.split()[0] == "joint"
    ]
    assert heads == [["aaaaaa"], ["bbbbbb", "cccccc", "dddddd"]]


def test_prose_is_wrapped_between_words():
    text = "one formulation of the inertia matrix from a paper"
    lines = drawn(table("", ["name", "text"], [["x", text]], prose=[1]), 40)
    assert " ".join(" ".join(lines[2:]).split()) == f"x {text}"
    assert max(map(len, lines)) <= 40


def test_numbers_and_counts():
    assert number(-0.0) == "0"
    assert number(None) == ""
    assert [count(k, "box", "boxes") for k in (0, 1, 2)] == ["0 boxes", "1 box", "2 boxes"]
    assert count(1, "joint") == "1 joint"


def test_entries_have_names_and_units():
    text = printed("eval scara gravity_load", 80)
    assert re.search(r"quill +-18.639 +N\n", text.replace(" \n", "\n"))
    assert re.search(r"shoulder +0 +N m\n", text.replace(" \n", "\n"))
    floating = printed("eval planar3 bias --floating", 80)
    assert re.search(r"base y +23\.544 +N\n", floating.replace(" \n", "\n"))  # 2.4 kg, carried by the base
    assert re.search(r"wrist_bend +0 +0\n", printed("simulate puma560 --duration 0.05", 80).replace(" \n", "\n"))
