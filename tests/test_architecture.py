"""The page on the architecture: rooms of all parts and their imports, stations and lengths of walks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rooms as room_map
from walks import WALKS, walk

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "armdyn"
PAGE = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def rooms() -> dict[str, set[str]]:
    """The parts of the package, folders and files, that each room of the page holds."""
    return {room: set(parts) for room, parts in room_map.by_room().items()}


def imports(path: Path) -> set[str]:
    """The parts of the package that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "armdyn":
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names


def test_every_part_of_the_package_is_in_one_room():
    parts = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    listed = [part for held in rooms().values() for part in held]
    assert sorted(listed) == sorted(parts - {"__init__", "__main__", "__pycache__"})


def test_the_imports_between_rooms_are_those_of_the_source():
    home = {part: room for room, held in rooms().items() for part in held}
    found: dict[str, set[str]] = {room: set() for room in rooms()}
    for part, room in home.items():
        place = PACKAGE / part
        for path in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
            found[room] |= {home[name] for name in imports(path) if name in home} - {room}
    assert {row[0]: set(filter(None, row[3].split(", "))) for row in rows("Rooms")} == found


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_passes_its_stations_in_order(name):
    row = next(row for row in rows("Walks") if row[0] == name)
    stations = re.findall(r"`([a-z_0-9/]+\.py)`", row[4])
    assert 4 <= len(stations) <= 10
    files = walk(name)
    assert len(files) <= int(row[2]), f"{name} enters {len(files)} files; what made the walk longer?"
    assert [file for file in files if file in stations] == stations


def test_a_class_name_stands_for_one_thing():
    places: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^ *class (\w+)", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(path.relative_to(PACKAGE).as_posix())
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert not several, "two things of one name: rename one of them"


def test_every_test_file_is_in_the_map_and_every_part_has_tests():
    parts = room_map.by_part()
    folder = Path(__file__).parent
    files = {
        path.relative_to(folder.parent).as_posix() for path in folder.rglob("test_*.py") if "golden" not in path.parts
    }
    assert {file for found in parts.values() for file in found} == files, "tests/README.md has a row for each"
    known = {part for held in rooms().values() for part in held}
    assert {part for part in known if (PACKAGE / part).is_dir()} <= set(parts) - {"whole"} <= known
    assert len(rooms()) == len(rows("Rooms"))
    assert room_map.tests_of("simulation")[0] == "tests/test_simulation.py"
    assert set(room_map.tests_of("motion")) >= set(room_map.tests_of("control"))
    with pytest.raises(SystemExit, match=r"no room 'simulatoin' \(did you mean simulation\?\)"):
        room_map.tests_of("simulatoin")
