"""In a terminal of 80 columns no word is cut, no line too long, and numbers stand beside names and units."""

from __future__ import annotations

import io
import re
import sys
from functools import partial

import numpy as np
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import armdyn
import armdyn.identification
import armdyn.motion
import armdyn.report.collect
from armdyn.cli import COMMANDS as EVERY
from armdyn.cli import app
from armdyn.cli.common import PlainConsole, fail, note, table
from armdyn.errors import count
from armdyn.html import number
from armdyn.studies import puma_line
from noisy_logs import recorded

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
    "simulate panda_hand --duration 0.02 --controller gravity_compensation --controller payload_estimator",
    "study puma-line",
    "bound scara gravity_load --seconds 0.1",
    "bench planar3 --seconds 0",
    "cache show",
    "compare ur5 ur10",
    "convert scara scara.toml",
    "emit planar3 --quantity bias -o c",
    "deploy planar3 --quantity bias -o d --no-build --no-stack --overwrite",
    "excite planar3 --duration 2 --harmonics 2 --rate 50 -o motion.csv",
    "poses scara --count 8 --candidates 20",
    "report scara -o page.html --no-meshes",
    "identify planar3 log.csv --friction coulomb --regularization 1 -o found",
    "pipeline log.csv --urdf planar3 --friction coulomb --target c --no-build -o piped",
    "sweep study.toml --threads 1",
    "calibrate scara measured.csv -o calibrated",
    "motion ur5 --via way.csv",
)
MEASURED = ("study", "bench", "bound", "cache", "sweep")  # their numbers differ from run to run
SLOW = {  # what takes longer than a fraction of a second is computed once for all widths
    "study": (puma_line, "data"),
    "report": (armdyn.report.collect, "collect"),
    "identify": (armdyn.identification, "identify"),
    "excite": (armdyn.identification, "excite"),
    "motion": (armdyn.motion, "time_optimal"),
    "pipeline": (armdyn, "pipeline"),
}
STUDY = """
study = "capability"
arm = "scara"
samples = 20
[uncertain]
payload_mass = { uniform = [0.0, 2.0] }
[capability]
effort = [200, 100, 50, 10]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands read: a log of a motion, measured poses, a study."""
    where, arm, rng = tmp_path_factory.mktemp("inputs"), armdyn.load("planar3"), np.random.default_rng(0)
    t, q, qd, tau = recorded(arm, seconds=5.0)
    heads = ["t", *(f"{name}{k + 1}" for name in ("q", "qd", "tau") for k in range(3))]
    np.savetxt(where / "log.csv", np.column_stack([t, q, qd, tau]), delimiter=",", header=",".join(heads), comments="")
    scara = armdyn.load("scara")
    q = rng.uniform(-0.5, 0.5, (12, 4))
    rows = np.column_stack([q, scara.pose(q)[:, :3, 3] + 1e-4 * rng.normal(size=(12, 3))])
    np.savetxt(where / "measured.csv", rows, delimiter=",", header="q1,q2,q3,q4,x,y,z", comments="")
    (where / "study.toml").write_text(STUDY)
    (where / "way.csv").write_text("q1,q2,q3,q4,q5,q6\n0,-1,1,0,1,0\n0.5,-1.2,1.2,0,1,0.3\n")
    return where


def once(function):
    """The function, computed at its first call alone."""
    results = []

    def call(*args, **kwargs):
        if not results:
            results.append(function(*args, **{**kwargs, **function.keywords}))
        return results[0]

    return call


def printed(command, width, codes=(0,)):
    result = RUN.invoke(app, command.split(), env={"COLUMNS": str(width)})
    assert result.exit_code in codes, result.output + repr(result.exception)
    return result.stdout


def words(text, command):
    found = {word for word in re.split(r"[\s─]+", text) if word}
    return {re.sub(r"[\d.e+-]+", "#", word) for word in found} if command.startswith(MEASURED) else found


def test_every_command_that_prints_is_there():
    rest = {"studio", "servo", "selftest"}  # one serves; one prints prose; the third has a table of its own tests
    assert {command.split()[0] for command in COMMANDS} == set(EVERY) - rest


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_is_cut(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    name = command.split()[0]
    if name in SLOW:
        module, function = SLOW[name]
        quick = {"search": None, "starts": 1} if name == "excite" else {}
        monkeypatch.setattr(module, function, once(partial(getattr(module, function), **quick)))
    codes = (0, 1, 5) if name in ("compare", "identify", "pipeline") else (0,)  # differs; not to be trusted
    whole = words(printed(command, UNBOUNDED, codes), command)
    for width in (80, 120):
        text = printed(command, width, codes)
        assert not [line for line in text.splitlines() if cell_len(line) > width]
        assert words(text, command) <= whole
        assert not re.search(r"(?<![\w.])-0(\.0*)?(e[+-]?0+)?(?![\d.e\w])", text), "a minus before zero"


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
    shown = " ".join(printed("show panda_hand", UNBOUNDED).split())
    assert "rotor inertia [kg m², kg] viscous [N m s/rad, N s/m] Coulomb [N m, N]" in shown
    assert "q of the largest [rad, m]" in " ".join(printed("bound scara gravity_load --seconds 0.1", UNBOUNDED).split())
    text = printed("eval scara gravity_load", 80)
    assert re.search(r"quill +-18.639 +N\n", text.replace(" \n", "\n"))
    assert re.search(r"shoulder +0 +N m\n", text.replace(" \n", "\n"))
    floating = printed("eval planar3 bias --floating", 80)
    assert re.search(r"base y +23\.544 +N\n", floating.replace(" \n", "\n"))  # 2.4 kg, carried by the base
    assert re.search(r"wrist_bend +0 +0\n", printed("simulate puma560 --duration 0.05", 80).replace(" \n", "\n"))


class Terminal(io.StringIO):
    """What is printed, taken for a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_notes_are_wrapped_below_their_label_in_a_terminal_and_whole_in_a_pipe(terminal, monkeypatch):
    path = "/a/" + "long/" * 20
    text = f"the self-made tool is tool0; {'other frames of the hand ' * 6}are in {path}, which is not read"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", Terminal() if terminal else io.StringIO())
    note(text)
    with pytest.raises(SystemExit):
        fail(text)
    plain = re.sub(r"\x1b\[[\d;]*m", "", sys.stderr.getvalue())
    if not terminal:
        assert plain == f"note: {text}\nerror: {text}\n"
        return
    assert " ".join(plain.split()) == f"note: {text} error: {text}"
    lines = plain.splitlines()
    assert [line for line in lines if cell_len(line) > 80] == [f"{gap}{path}," for gap in (" " * 6, " " * 7)]
    second = next(k for k, line in enumerate(lines) if line.startswith("error:"))
    assert second > 3
    assert all(re.match(r" {6}\S", line) for line in lines[1:second])
    assert all(re.match(r" {7}\S", line) for line in lines[second + 1 :])
