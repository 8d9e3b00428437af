"""The common data of all readers and writers of robot files, and the rule for what the tool of a robot is.

The tool is, in this order: the frame that the caller names (``tool=``, or the end of the chain that ``tip=`` selects);
the tool that the file states; the only frame named by convention (`TOOL_NAMES`, in their order); the end of the chain
if there is one tip. Otherwise the robot has no tool (docs/adr/0028-the-tool.md).

What a file says of its links' inertias: a mass below zero is an error unless ``strict=False``. A moving body without
mass and inertia, and an inertia that no body can have, are notes; ``strict=True`` makes them errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from armdyn.chain import Chain, Link, Placement
from armdyn.chain.canonical import SnapReport
from armdyn.chain.chain import listed, named_like_a_tool
from armdyn.chain.checks import impossibility
from armdyn.errors import FileError, choose
from armdyn.files.numbers import to_rpy

Named = Iterable[tuple[str, Link]]


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link; link 0 is the base."""

    name: str
    link: int
    placement: Placement

    def __repr__(self) -> str:
        try:
            xyz = ", ".join(f"{float(x):.6g}" for x in self.placement.p)
            rpy = ", ".join(f"{angle:.6g}" for angle in to_rpy(self.placement.R))
        except TypeError:  # symbols
            return f"Frame({self.name}, on link {self.link})"
        return f"Frame({self.name}, on link {self.link} at xyz=({xyz}) m, rpy=({rpy}) rad)"


@dataclass(frozen=True)
class Description:
    """An arm as given in its file, with exact numbers.

    Nothing is snapped, except what a reader must snap before it places frames.
    """

    name: str
    chain: Chain
    source: str = ""
    frames: tuple[Frame, ...] = ()
    snapped: SnapReport = SnapReport()  # what the reader snapped
    notes: tuple[str, ...] = ()  # what the reader tolerated or decided
    # Whether the file, or the part of it that was selected, says what the tool is.
    states_tool: bool = field(default=False, compare=False)
    tool_name: str = ""  # the tool's name, if the file states one
    link_frames: tuple[Frame, ...] = ()  # of each body, the frame of its link in the file; empty: the body's own


def with_tool(description: Description, tool: str | None = None) -> Description:
    """The robot with its tool by the rule above; `asked` is the frame that the caller names."""
    if tool is not None:
        moving = {frame.name: frame for frame in description.frames if frame.link}
        return _at(description, moving[choose("frame that moves, for tool,", tool, moving)])
    if description.states_tool:
        return description
    moving = {frame.name: frame for frame in description.frames if frame.link}
    named = named_like_a_tool(list(moving))
    if len(named) == 1:
        note = f"the tool is the frame {named[0]!r}, by its name; tool= (--tool) takes another"
        return replace(_at(description, moving[named[0]]), notes=(note, *description.notes))
    if len(named) > 1:
        end = (
            "the tool is the end of the chain" if len(description.chain.tips) == 1 else "the robot has no default tool"
        )
        note = f"several frames are named like a tool ({listed(named)}): {end}; tool= (--tool) takes one of them"
        return replace(description, notes=(note, *description.notes))
    return description


def all_frames(arm: Description) -> tuple[Frame, ...]:
    """The named frames, and those of links with a name of their own, unlike link1, that no frame has."""
    names = {frame.name for frame in arm.frames} | {f"link{frame.link}" for frame in arm.link_frames}
    return (*arm.frames, *(frame for frame in arm.link_frames if frame.name not in names))


def tool_of(chain: Chain, frames: Sequence[Frame], name: str = "") -> Frame | None:
    """The tool of a chain; without a name it gets that of the frame at its place, a conventional one first."""
    carrier = chain.tool_carrier
    if not carrier:
        return None
    here = [frame.name for frame in frames if frame.link == carrier and frame.placement == chain.tool]
    called = name or next(iter((*named_like_a_tool(here), *here)), "tool")
    return Frame(called, carrier, chain.tool)


def _at(description: Description, frame: Frame) -> Description:
    chain = replace(description.chain, tool=frame.placement, tool_link=frame.link)
    return replace(description, chain=chain, tool_name=frame.name, states_tool=True)


HOLLOW = "tips with a shape but without mass (a gripper or tool whose inertia is not in the file?): "


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
