"""Names of robots in generated code: no name can collide with words of the languages, their headers or armdyn's own."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import armdyn
from armdyn.codegen.text.names import LONGEST, PREFIXES, STEMS, identifier, reserved
from armdyn.deployment import TARGETS
from armdyn.deployment.request import Request
from armdyn.deployment.trial import trial
from armdyn.files.text import file_name

_BROKEN_FMUS = """
model fmu dynamics modes stepping integration unsupported fmi3Functions fmi3PlatformTypes math stdint
"""
BROKEN_FMUS = _BROKEN_FMUS.split()
BROKEN_CPP = ["main", "NULL", "INFINITY", "Eigen"]
_OWN = """
eigen input output view scalar controllers passed failed differs judge armdyn_test armdyn_fmu armdyn_vectors know
joint test vectors harness bias gravity_load payload_parameters adaptive armdyn ARMDYN_model bias_q expected
"""
OWN = _OWN.split()
_OTHERS = """
new class restrict linux unix min max near CON nul com1 LPT9 Math STDINT printf read link index y0 sin gamma yes
"""
OTHERS = _OTHERS.split()
STRANGE = [
    "",
    " ",
    "_",
    "__",
    "_x",
    "9dof",
    "a b",
    "a__b",
    "Küka",
    "机器人",
    "../x",
    "*/",
    "🤖",
    "x" * 300,
    "\udc80",
    "-",
]
NAMES = [*BROKEN_FMUS, *BROKEN_CPP, *OWN, *OTHERS, *STRANGE]
_HEADERS = """
array cstddef tuple type_traits utility cmath cstdio cstdlib cstring vector string iostream algorithm functional
memory complex assert.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h stdarg.h
stddef.h stdint.h stdio.h stdlib.h string.h strings.h time.h wchar.h wctype.h unistd.h
"""
HEADERS = _HEADERS.split()
needs_compilers = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "g++", "make"))), reason="no cc, g++ or make on this machine"
)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_becomes_an_identifier_of_its_own(name):
    word = identifier(name)
    assert re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", word), "a letter first, no double underscore, none at the end"
    assert len(word) <= LONGEST
    assert word not in reserved()
    assert word.casefold() not in STEMS
    assert not word.casefold().startswith(PREFIXES)
    assert identifier(word) == word, "made twice, it stays"


def test_usual_names_stay():
    assert {name: identifier(name) for name in armdyn.catalogue()} == {name: name for name in armdyn.catalogue()}
    usual = ["UR5", "KUKA_LWR4", "stretch", "spot", "Atlas", "my_robot2", "iiwa14", "gen3", "KR210"]
    assert [identifier(name) for name in usual] == usual


def test_what_is_cut_or_lost_keeps_robots_apart():
    long = "x" * 300
    assert identifier(long) != identifier(long + "y")
    assert identifier("机器人") != identifier("手臂")
    assert identifier("") == identifier(" ") == "arm"


@pytest.mark.parametrize("name", [*STRANGE, "con", "COM1.txt", "机" * 300, ".." * 200])
def test_every_name_becomes_a_file_name(name, tmp_path):
    where = tmp_path / file_name(name, ".html")
    where.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == [where.name]


@needs_compilers
def test_no_word_of_a_header_is_left(tmp_path):
    """Every word and macro of the headers, as a namespace after those headers, in one compilation."""
    source = "".join(f"#include <{header}>\n" for header in HEADERS)
    (tmp_path / "x.cpp").write_text(source)

    def compiler(*flags):
        command = ["g++", "-std=gnu++17", "x.cpp", *flags]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    text = re.sub(r'^#.*$|"(?:\\.|[^"\\])*"', "", compiler("-E").stdout, flags=re.MULTILINE)
    macros = re.findall(r"^#define (\w+)", compiler("-dM", "-E").stdout, re.MULTILINE)
    words = sorted({*re.findall(r"\b[A-Za-z]\w*\b", text), *macros})
    assert len(words) > 3000
    names = dict.fromkeys(identifier(word) for word in words)
    (tmp_path / "x.cpp").write_text(source + "".join(f"namespace {name} {{ extern int inside; }}\n" for name in names))
    done = compiler("-fsyntax-only")
    assert done.returncode == 0, done.stderr[:2000]
    ours = re.compile(r"[A-Za-z]\w*_(H|HPP|N|P|NQ|NV|WITH_EIGEN|CONTROLLERS_H|CONTROLLERS_HPP)")
    assert not [macro for macro in macros if ours.fullmatch(macro) and not macro.startswith("EIGEN_")]


def planar(name):
    return replace(armdyn.load("planar3"), name=name)


@needs_compilers
@pytest.mark.parametrize("target", ["c", "cpp"])
def test_robots_of_all_names_compile_together(target, tmp_path):
    """One robot per name, all headers in one program: no name collides with a header, nor with another robot."""
    names = [*BROKEN_FMUS, *BROKEN_CPP, *OWN, *OTHERS]
    includes = []
    for name in names:
        request = Request(planar(name), ("bias",), measure_stack=False)
        contents = TARGETS[target].files(request)
        assert len({path.casefold() for path in contents}) == len(contents)
        for path, content in contents.items():
            if path.endswith((".h", ".hpp")) or (target == "c" and path.endswith(".c") and "test" not in path):
                (tmp_path / path).write_bytes(content)
                includes += [path] if path.endswith((".h", ".hpp")) else []
    assert len(includes) == len(names)
    source = tmp_path / f"all_of_them.{target}"
    lines = [f'#include "{path}"' for path in sorted(includes)]
    system = ["math.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "unistd.h"]
    source.write_text(
        "\n".join([*lines, *(f"#include <{header}>" for header in system), "int main(void) { return 0; }\n"])
    )
    command = ["gcc", "-std=gnu99"] if target == "c" else ["g++", "-std=gnu++17"]
    run = [*command, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I.", source.name]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


@needs_compilers
@pytest.mark.parametrize(
    ("target", "name"),
    [("c", "bias"), ("c", "math"), ("cpp", "eigen"), ("cpp", "passed"), ("cpp", "bias_q"), ("c", "x" * 300)],
)
def test_some_names_built_and_run(target, name):
    request = Request(planar(name), ("bias",), measure_stack=False)
    assert trial(TARGETS[target], TARGETS[target].files(request)).endswith("passed, 0 failed")


@needs_compilers
def test_fmus_of_all_names():
    """No file of the arm has the name of another, under any name; one of them is built and run."""
    contents = TARGETS["fmu"].files(Request(planar("stdint"), binary=False, measure_stack=False))
    assert trial(TARGETS["fmu"], contents).endswith(" 0 failed")
    others = {Path(path).stem.casefold() for path in contents} - {"stdint_arm"}
    assert "armdyn_modes" in others
    without_code = {"modeldescription", "builddescription", "makefile", "readme"}
    assert all(stem.startswith(("armdyn_", "fmi3")) for stem in others - without_code)
    for name in NAMES:
        assert identifier(name).casefold() not in others
