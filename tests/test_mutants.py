"""The campaign of planted errors: what it plants, that it repeats itself, and how it judges."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

import mutants

SOURCE = b'''
"""Docstring: 1 < 2."""
def f(x: int = 3, *, y: "1 + 2" = 0) -> list[int]:
    if not x:
        raise ValueError(f"{x + 1} is {1 < 2}")
    kept = sorted(abs(v) for v in x)
    kept.append(max(x[0], 2.5))
    for a, b in zip(x, kept, strict=True):
        assert a == b, "1 + 1"
    return kept and g(x, y)
'''


def planted(source: bytes) -> set[tuple[str, str]]:
    return {(site.old, site.new) for site in mutants.Sites("f.py", source).found}


def test_what_is_planted_and_what_is_left_alone():
    found = planted(SOURCE)
    assert found == {
        ("3", "4"), ("not x", "not (not x)"), ("not x", "(x)"), ("0", "1"), ("2.5", "5.0"), ("max", "min"),
        ("abs(v)", "(v)"), ("sorted(abs(v) for v in x)", "list((abs(v) for v in x))"), ("x, y", "y, x"),
        ("kept.append(max(x[0], 2.5))", "None"), ("and", "or"),
    } | {("x, kept", "kept, x")}  # fmt: skip
    assert all(site.function == "f" for site in mutants.Sites("f.py", SOURCE).found)


def test_a_seed_gives_the_same_errors_and_every_one_compiles():
    rooms = ["control", "motion", "files"]
    first, again = (list(islice(mutants.drawn(5, rooms), 60)) for _ in range(2))
    assert first == again
    assert [len({site.file.split("/")[2] for site in first[k : k + 3]}) for k in (0, 3, 57)] == [3] * 3  # in turn
    for site in first:
        source = (mutants.ROOT / site.file).read_bytes()
        assert source[site.start : site.end].decode() == site.old
        assert source.count(b"\n", 0, site.start) + 1 == site.line
        compile(source[: site.start] + site.new.encode() + source[site.end :], site.file, "exec")


def test_an_error_is_caught_or_survives(tmp_path):
    (tmp_path / "f.py").write_text("def twice(x):\n    return 2 * x\n")
    (tmp_path / "test_f.py").write_text(
        "from f import twice\ndef test_zero():\n    assert twice(0) == 0\ndef test_two():\n    assert twice(2) == 4\n"
    )
    site = mutants.Mutant(
        "f.py", 2, len("def twice(x):\n    return "), len("def twice(x):\n    return 2"), "2", "3", "twice"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutants, "ROOT", tmp_path)
        seen, how = mutants.verdict(site, ["test_f.py::test_two"], tmp_path, 60)
        assert (seen, mutants.silent({"verdict": seen, "how": how})) == ("caught", True)
        assert mutants.verdict(site, ["test_f.py::test_zero"], tmp_path, 60) == ("survived", "")
        assert mutants.verdict(site, [], tmp_path, 60) == ("unreached", "")
    assert (tmp_path / "f.py").read_text() == "def twice(x):\n    return 2 * x\n"  # the source is as it was


def test_equivalent_errors_have_a_reason_and_stand_in_a_file_that_exists():
    for key, reason in mutants.equivalent().items():
        assert len(reason) > 20
        assert (mutants.ROOT / Path(key.split(" ")[0])).is_file(), key
