"""Which test files belong to a part of the package, or to a room of the architecture: the table of tests/README.md.

python tests/rooms.py [PART | ROOM]...
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from pathlib import Path

HERE = Path(__file__).parent


def by_part() -> dict[str, list[str]]:
    """The test files of each part, as paths from the root of the repository, the first one first."""
    lines = (line for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    table: dict[str, list[str]] = {}
    for parts, tests in (line.strip("| ").split(" | ") for line in list(lines)[1:]):
        files = [(HERE / name).with_name(f"test_{Path(name).name}.py") for name in tests.split(", ")]
        for part in parts.split(", "):
            table[part] = [file.relative_to(HERE.parent).as_posix() for file in files]
    return table


def by_room() -> dict[str, list[str]]:
    """The parts of each room."""
    text = (HERE.parent / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.partition("## Walks")[0].splitlines() if line.count("`") > 1]
    return {row[0]: re.findall(r"`(\w+)(?:/|\.py)`", row[2]) for row in rows if len(row) > 2}


def tests_of(name: str) -> list[str]:
    """The test files of a part or room that `make test` runs."""
    parts, rooms = by_part(), by_room()
    if name not in parts and name not in rooms:
        near = get_close_matches(name, [*parts, *rooms], 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise SystemExit(f"no room {name!r}{hint}; there are {', '.join([*rooms, *parts])}")
    found = [file for part in rooms.get(name, [name]) for file in parts.get(part, ())]
    return [file for file in dict.fromkeys(found) if "bridges/" not in file]


if __name__ == "__main__":
    print(*dict.fromkeys(file for name in sys.argv[1:] for file in tests_of(name)))
