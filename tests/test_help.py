"""Help, lazy commands and errors of the command line, in its own words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Annotated

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from armdyn.cli import COMMANDS, GROUPS, app, command
from armdyn.cli.common import CUT, ROBOT, STATE, with_robot_options
from armdyn.cli.encoding import similar
from armdyn.cli.help import HelpfulCommand, options_by_panel, spelled
from armdyn.errors import InputError

RUN = CliRunner()
PLAIN = [name for name in COMMANDS if name != "cache"]


def shown(*words, width=80):
    result = RUN.invoke(app, list(words), env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def context(name):
    return command(name).make_context(name, ["x"] * 8, resilient_parsing=True)


def test_the_program_lists_its_commands_in_groups():
    lines = shown("--help").splitlines()
    at = {title: lines.index(title) for title in GROUPS}
    assert list(at.values()) == sorted(at.values())
    for title, names in GROUPS.items():
        for name in names:
            line = next(k for k, text in enumerate(lines) if text.startswith(f"  {name} "))
            assert line > at[title]
            assert lines[line].split()[1:], f"{name} says nothing"
    assert len(lines) < 80


@pytest.mark.parametrize("name", PLAIN)
def test_help_fits_80_columns_and_cuts_no_word(name):
    for option in ("--help", "--help-all"):
        text, whole = shown(name, option), shown(name, option, width=2000)
        assert set(text.split()) == set(whole.split())
        assert not [line for line in text.splitlines() if cell_len(line) > 80 and "Example" not in line]
        assert "bool" not in text


@pytest.mark.parametrize("name", PLAIN)
def test_help_names_every_option_and_help_all_explains_it(name):
    brief, full = shown(name, "--help"), " ".join(shown(name, "--help-all", width=200).split())
    for parameter in command(name).params:
        if parameter.param_type_name == "option":
            assert max(parameter.opts, key=len) in brief
            assert " ".join(parameter.help.split()) in full


@pytest.mark.parametrize(
    ("name", "common", "rest"),
    [
        ("deploy", {"output", "target", "quantity", "dtype", "frame"}, {"cpus", "error_bound", "ranges", "binary"}),
        ("pipeline", {"arm", "output", "validate", "friction", "targets"}, {"dtype", "quantities", "effort", "folds"}),
    ],
)
def test_code_for_a_controller_has_few_common_options(name, common, rest):
    panels = options_by_panel(command(name), context(name))
    shown_at_once = [parameter.name for parameter in panels[""]]
    assert len(shown_at_once) <= 14
    assert set(shown_at_once) >= common
    assert shown_at_once.index("output") <= 1, "what has to be given comes first"
    assert {parameter.name for title, options in panels.items() if title for parameter in options} >= rest


def test_a_command_has_few_common_options():
    panels = options_by_panel(command("simulate"), context("simulate"))
    assert len(panels[""]) <= 14
    rest = [parameter.name for title, options in panels.items() if title for parameter in options]
    assert set(rest) >= {*CUT, "delay", "restitution", "as_json"}


def test_flags_have_no_value_and_other_options_one():
    text = shown("deploy", "--help-all")
    assert re.search(r"--friction/--no-friction +Inverse and forward dynamics", text)
    assert re.search(r"-o, --output FILE", text)
    assert "[default: on]" in text


def test_only_the_command_that_runs_is_imported():
    code = (
        "import sys; from armdyn.cli import app; from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['list', '--json']).exit_code == 0\n"
        "print(*sorted(name for name in sys.modules if name.startswith('armdyn.cli.') and name.endswith('_')))\n"
        "print('armdyn.simulation' in sys.modules)\n"
        "from armdyn.cli import COMMANDS, command\n"
        "before = set(sys.modules)\n"
        "for name in COMMANDS:\n"
        "    command(name)\n"
        "heavy = ('scipy', 'llvmlite', 'armdyn.arm', 'armdyn.simulation', 'armdyn.identification')\n"
        "print(*(name for name in sorted(set(sys.modules) - before) if name.startswith(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["armdyn.cli.list_", "False"], (
        "help of a command imports none of what it computes with"
    )


def test_an_unknown_command_is_refused_with_a_suggestion():
    result = RUN.invoke(app, ["simulat"])
    assert result.exit_code == 2
    assert "simulate" in result.output


def test_robot_options_follow_the_type_of_an_argument_not_its_name():
    def compare(first: Annotated[str, typer.Argument(), ROBOT], arm: str) -> dict:
        return dict(STATE.cut)

    def other(arm: str) -> None:
        pass

    assert with_robot_options(other) is other
    run = with_robot_options(compare)
    assert run(first="x", arm="y", tip="tool0")["tip"] == "tool0"


def test_options_of_a_command_do_not_stay_in_force(tmp_path):
    assert "8 minimal" in shown("parameters", "scara")
    assert RUN.invoke(app, ["show", "panda_hand", "--tip", "panda_hand", "--lock", "rest"]).exit_code == 0
    assert STATE.cut == {}
    assert "8 joints" in shown("show", "panda_hand")
    assert RUN.invoke(app, ["--debug", "show", "planar3"]).exit_code == 0
    RUN.invoke(app, ["show", "planar3"])
    assert not STATE.debug


def test_messages_spell_options_as_typed():
    def f(
        frame: str = "", friction: Annotated[bool, typer.Option("--friction/--no-friction")] = True, cut_off: float = 0
    ) -> None:
        """Nothing."""

    one = typer.Typer(add_completion=False)
    one.command("f", cls=HelpfulCommand)(f)
    made = typer.main.get_command(one)
    made.spelling = {"q0": "--q"}
    said = "give frame= or frame='tool0', friction=False, friction=True, cut_off=0.5; q0 is short; method='x' stays"
    assert spelled(said, made) == (
        "give --frame or --frame tool0, --no-friction, --friction, --cut-off 0.5; --q is short; method='x' stays"
    )


@pytest.mark.parametrize(
    ("words", "message", "never"),
    [
        (("bound", "planar3"), "give --range q:1=LOW,HIGH", "q="),
        (("eval", "baxter", "pose"), "--tool", "="),
    ],
)
def test_errors_speak_the_command_line(words, message, never):
    error = RUN.invoke(app, list(words)).exception
    assert isinstance(error, InputError)
    assert message in str(error)
    assert never not in str(error).replace("--range q:1=", "")


def test_output_that_cannot_be_encoded_is_transliterated():
    code = "import sys; sys.argv = ['armdyn', *sys.argv[1:]]; from armdyn.cli import main; main()"
    for words, expected in (
        ("show ur5", "theta [rad]"),
        ("parameters planar3 --symbolic", "I3zz"),
        ("--help", "COMMAND …"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "cp1252", "COLUMNS": "120"},
            check=True,
        )
        assert expected in done.stdout.decode("cp1252")
    assert similar("θ, ω², ≠, Ḣ, é, U₃₃") == "theta, w2, !=, H, e, U33"


def test_every_character_of_the_sources_has_a_similar_one():
    from pathlib import Path

    import armdyn

    texts = [path.read_text(encoding="utf-8") for path in Path(armdyn.__file__).parent.rglob("*.py")]
    characters = {character for text in texts for character in text if ord(character) > 127}
    unlike = {character for character in characters if similar(character) in ("?", "")}
    assert len(unlike) < 0.2 * len(characters), unlike


def test_a_message_that_says_a_call_in_both_languages_says_one(tmp_path):
    """A chain that carries a gripper: the call in Python is not half translated."""
    path = tmp_path / "arm.urdf"
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="upper"/><link name="flange"/><link name="finger"/>'
        f'<joint name="a" type="revolute"><parent link="base"/><child link="upper"/>{limit}</joint>'
        f'<joint name="b" type="revolute"><parent link="upper"/><child link="flange"/>{limit}</joint>'
        f'<joint name="grip" type="prismatic"><parent link="flange"/><child link="finger"/>{limit}</joint></robot>'
    )
    said = str(RUN.invoke(app, ["check", str(path), "--tip", "flange"]).exception)
    assert "Lock them at rest with --tip flange --lock rest, give them values, as in --lock grip=0.0, or" in said
    assert "armdyn.load" not in said
