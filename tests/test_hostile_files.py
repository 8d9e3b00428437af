"""Readers, names and output files under attack: every defect is an error of ours, and nothing leaves its folder."""

from __future__ import annotations

import io
import os
import stat
import time

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import FileError, InputError
from armdyn.files.text import file_name, write_text
from armdyn.html import visible

INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
BODY = f'<inertial><mass value="2"/>{INERTIA}</inertial>'


def urdf(inside: str = '<axis xyz="0 0 1"/>', link: str = BODY, name: str = "one", joint: str = "j") -> str:
    return (
        f'<robot name="{name}"><link name="a"/>\n<link name="b">{link}</link>\n<joint name="{joint}" type="revolute">'
        f'<parent link="a"/><child link="b"/>{inside}</joint></robot>'
    )


DEFECTS = {
    "no mass value": ("", f"<inertial><mass/>{INERTIA}</inertial>", "line 2: link 'b': <mass> has no value"),
    "misspelt mass": (
        "",
        f'<inertial><mass vlaue="2"/>{INERTIA}</inertial>',
        "link 'b': <mass> has no value, but 'vlaue'",
    ),
    "no mass": ("", f"<inertial>{INERTIA}</inertial>", "link 'b': <inertial> has no <mass>"),
    "no ixx": ("", BODY.replace("ixx", "Ixx"), "line 2: link 'b': <inertia> has no ixx"),
    "misspelt origin": ('<origin xzy="1 0 0"/>', BODY, "line 3: joint 'j': <origin> has no xyz, but 'xzy'"),
    "no axis": ("<axis/>", BODY, "line 3: joint 'j': <axis> has no xyz"),
    "huge origin": ('<origin xyz="1e308 0 0"/>', BODY, "expects numbers below 1e+100, got '1e308'"),
    "huge mass": ("", BODY.replace('"2"', '"1e308"'), "expects numbers below 1e+100, got '1e308'"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_of_a_urdf_are_errors_that_say_where(name: str):
    inside, link, message = DEFECTS[name]
    with pytest.raises(FileError) as error:
        armdyn.load(urdf(inside, link))
    assert message in str(error.value)


def test_what_is_tolerated_is_noticed():
    twice = BODY + BODY.replace('"2"', '"3"')
    arm = armdyn.load(urdf('<axis xyz="0 0 1"/><axis xyz="1 0 0"/><limit lower="0" upper="1" sped="2"/>', twice))
    assert arm.mass == 2
    assert [note.split(": ", 1)[1] for note in arm.notes] == [
        "link 'b': a second <inertial> is ignored",
        "joint 'j': a second <axis> is ignored",
        "joint 'j': <limit> has the unknown attribute 'sped'; known: lower, upper, velocity, effort",
    ]
    assert armdyn.load(urdf()).notes == ()


def test_text_loads_as_a_file_does(tmp_path):
    path = tmp_path / "one.urdf"
    path.write_text(urdf())
    assert armdyn.load(urdf()) == armdyn.load(path)
    declared = '\n\n<?xml version="1.0" encoding="iso-8859-1"?>\n' + urdf(joint="jé")
    assert armdyn.load(declared).joints[0].name == "jé"
    with pytest.raises(FileError, match=r"no arm 'xxxxx.*20000 characters"):
        armdyn.load("x" * 20_000)
    with pytest.raises(InputError, match="a path or the text"):
        armdyn.load(3)


def test_a_late_declaration_and_xacro_leftovers_are_noticed(tmp_path):
    path = tmp_path / "late.urdf"
    late = '\n<!-- hello -->\n<?xml version="1.0" encoding="iso-8859-1"?>\n' + urdf(joint="jé")
    path.write_bytes(late.encode("iso-8859-1"))
    arm = armdyn.load(path)
    assert arm.joints[0].name == "jé"
    assert arm.notes == ("late.urdf, line 3: the XML declaration should be at the very beginning of the file",)
    left = urdf().replace("<link", '<xacro:property name="x" value="1"/><link', 1)
    assert armdyn.load(left).notes == ("URDF text, line 1: the xacro tag <xacro:property> is ignored",)


def test_xacro_files_are_expanded_or_the_message_says_how(tmp_path, monkeypatch):
    path = tmp_path / "arm.urdf.xacro"
    macro = '<xacro:property name="m" value="${1 + 1}"/>'
    text = urdf().replace('<robot name="one">', f'<robot name="one" xmlns:xacro="http://ros.org/wiki/xacro">{macro}')
    path.write_text(text.replace('value="2"', 'value="${m}"'))
    pytest.importorskip("xacro")
    assert armdyn.load(path).mass == 2
    path.write_text(text.replace('value="2"', 'value="${nothing}"'))
    with pytest.raises(FileError, match="xacro cannot expand it"):
        armdyn.load(path)
    monkeypatch.setitem(__import__("sys").modules, "xacro", None)
    with pytest.raises(FileError, match=r"pip install 'armdyn\[xacro\]', or expand it elsewhere"):
        armdyn.load(path)


@pytest.mark.parametrize("axis", ["1e200 0 0", "0 1e-200 1e-200", "3e200 4e200 0", "1e-300 0 0"])
def test_the_length_of_an_axis_does_not_matter(axis: str):
    if "e200" in axis:
        with pytest.raises(FileError, match="below 1e"):
            armdyn.load(urdf(f'<axis xyz="{axis}"/>'))
        return
    short = {"0 1e-200 1e-200": "0 1 1", "1e-300 0 0": "1 0 0"}[axis]
    assert armdyn.load(urdf(f'<axis xyz="{axis}"/>')) == armdyn.load(urdf(f'<axis xyz="{short}"/>'))


def test_absurd_magnitudes_are_found_by_check():
    heavy = armdyn.load(urdf(link=BODY.replace('"2"', '"1e30"'))).check()
    assert [finding.what for finding in heavy] == ["magnitude"]
    second = (
        f'<link name="c">{BODY}</link><joint name="k" type="revolute"><parent link="b"/><child link="c"/>'
        '<origin xyz="1e6 0 0"/><axis xyz="0 0 1"/></joint></robot>'
    )
    long = armdyn.load(urdf().replace("</robot>", second)).check()
    assert "joint k: b of 1e+06 m; other units?" in [str(finding) for finding in long]


@pytest.mark.parametrize(
    "name", ["../../escaped", "/etc/passwd", "..", ".", "", "a/b\\c", "con", "x" * 500, "\x1b[31m"]
)
def test_file_names_never_leave_their_folder(name: str, tmp_path):
    safe = file_name(name, ".html")
    assert safe == os.path.basename(safe)
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()
    assert not safe.startswith(".")
    (tmp_path / safe).write_text("")


def test_names_with_letters_of_any_language_stay():
    assert file_name("Роботарм 2-б") == "Роботарм 2-б"
    assert file_name("puma560", ".html") == "puma560.html"


def test_overwritten_files_keep_their_permissions(tmp_path):
    path = tmp_path / "arm.toml"
    armdyn.load("puma560").save(path)
    path.chmod(0o600)
    armdyn.load("puma560").save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_fifo_is_refused_at_once(tmp_path):
    path = tmp_path / "pipe.urdf"
    os.mkfifo(path)
    with pytest.raises(FileError, match="not a regular file"):
        armdyn.load(path)


HOSTILE = "[/red]x[bold]\x1b[2J\u202e"


@pytest.mark.parametrize("command", [["show"], ["check"], ["parameters"], ["eval", "gravity_load"]])
def test_markup_and_control_characters_in_names_are_printed_as_they_are(command, tmp_path):
    path = tmp_path / "hostile.toml"
    arm = armdyn.load("puma560")
    armdyn.Arm(HOSTILE, arm.given, arm.snap, HOSTILE).save(path)
    result = CliRunner().invoke(app, [command[0], str(path), *command[1:]])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert r"[/red]x[bold]\x1b[2J\u202e" in result.output or command == ["check"]


def test_errors_about_hostile_names_are_readable(capsys):
    from armdyn.cli.common import fail

    with pytest.raises(SystemExit):
        fail(f"no arm {HOSTILE}")
    assert r"error: no arm [/red]x[bold]\x1b[2J\u202e" in capsys.readouterr().err
    assert visible("line\n\ttab") == "line\n\ttab"


def test_an_arm_with_a_hostile_name_prints_in_any_console():
    arm = armdyn.load("puma560")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(armdyn.Arm(HOSTILE, arm.given, arm.snap, HOSTILE))
    assert r"[/red]x[bold]\x1b[2J" in console.export_text()


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ((-1.0,), "negative mass -1 kg"),
        ((0.0, (0, 0, 0), (1, 1, 1, 0, 0, 0)), "zero mass, but an inertia"),
        ((1.0, (0, 0, 0), (1, 1, 5, 0, 0, 0)), "principal moments 1, 1, 5 violate the triangle inequality"),
        ((1.0, (0, 0, 0), (-1, 1, 1, 0, 0, 0)), "not positive semidefinite"),
    ],
)
def test_impossible_payloads_are_refused_with_the_reason(load, reason):
    with pytest.raises(InputError, match=f"this payload is not possible: .*{reason}"):
        armdyn.load("puma560").with_payload(*load)


def test_possible_payloads_are_taken():
    arm = armdyn.load("puma560")
    assert arm.with_payload(0.0) == arm
    rod = arm.with_payload(1.0, (0, 0, 0.1), np.diag([0.1, 0.1, 0.0]))
    assert rod.mass == pytest.approx(arm.mass + 1)


def test_oversized_files_are_refused_within_a_second(tmp_path):
    path = tmp_path / "many.toml"
    link = "link = { mass = 1, com = [0,0,0], inertia = [1,1,1,0,0,0] }"
    body = f'kind = "revolute"\nb = 0\nbeta = 0\nd = 0\ntheta = 0\n{link}'
    path.write_text(f"[[joint]]\n{body}\n" * 3000)
    fixed = "".join(
        f'<link name="l{i}"/><joint name="f{i}" type="fixed"><parent link="{f"l{i - 1}" if i else "b"}"/>'
        f'<child link="l{i}"/></joint>'
        for i in range(4000)
    )
    wide = tmp_path / "wide.toml"
    wide.write_text("name = [" + "1.5," * 2_000_000 + "]")
    for source, message in (
        (path, "3000 joints; at most 500"),
        (wide, "bytes; arm files of at most"),
        (urdf().replace("</robot>", fixed + "</robot>"), "4002 links; at most 2000"),
    ):
        start = time.process_time()
        with pytest.raises(FileError, match=message):
            armdyn.load(source)
        assert time.process_time() - start < 1.0
