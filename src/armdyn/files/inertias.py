"""What a file says of its links' inertias: missing, negative and impossible ones become notes or errors.

A mass below zero is an error unless ``strict=False``. A moving body without mass and inertia, and an inertia that no
body can have, are notes; ``strict=True`` makes them errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from armdyn.chain import Chain, Link
from armdyn.chain.checks import impossibility
from armdyn.errors import FileError
from armdyn.files.description import Description

Named = Iterable[tuple[str, Link]]


def judged(label: str, links: Named, missing: list[str], strict: bool | None) -> tuple[str, ...]:
    """Notes on links that move: "link 'hand'" and its body; `missing` are those without mass and inertia."""
    notes = []
    for name, link in links:
        if link.mass < 0 and strict is not False:
            raise FileError(
                f"{label}: {name} has the mass {float(link.mass):g} kg: no mass is below zero. strict=False loads it "
                "all the same, with a note (command line: --no-strict)"
            )
        if faults := impossibility(link):
            notes.append(f"{name} has an inertia that no body can have: {faults}")
    if missing:
        notes.append(f"without <inertial>, so that mass and inertia of these moving links are 0: {', '.join(missing)}")
    if strict and notes:
        raise FileError(f"{label}: strict=True refuses it: {'; '.join(notes)}")
    return tuple(notes)


def merged(chain: Chain, single: Iterable[str]) -> list[tuple[str, Link]]:
    """The bodies of a chain by the names of their joints, except those of one link, which are judged as that link."""
    alone = set(single)
    bodies = zip(chain.joint_names, chain.links, strict=True)
    return [(f"the body that joint {name!r} moves", link) for name, link in bodies if name not in alone]


def of_arm_file(arm: Description, label: str, strict: bool | None) -> Description:
    """An arm file's description with the notes on its links."""
    names = (f"link {k} ({name})" for k, name in enumerate(arm.chain.joint_names, 1))
    notes = judged(label, zip(names, arm.chain.links, strict=True), [], strict)
    return replace(arm, notes=(*arm.notes, *notes)) if notes else arm
