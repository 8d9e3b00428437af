"""Which frames are named like a tool, and the message where a tool is needed and there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from armdyn.chain.chain import Chain

# Names of tool frames, in the order in which they are tried. A prefix, as of one robot among several, may precede them:
# arm_tool0. "ee" must be a word of the name, as in ee_link, link_eef and EndEffector_Link: "knee" and "wheel" are not.
TOOL_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(.*[^a-z])?tool0",
        r"(.*[^a-z])?tcp",
        r"(.*[^a-z])?(ee|eef|end_?effector)([^a-z].*)?",
        r"(.*[^a-z])?flange",
    )
)
_MOST_LISTED = 20


def named_like_a_tool(names: Sequence[str]) -> tuple[str, ...]:
    """The names that follow the first convention that any of them follows."""
    for pattern in TOOL_NAMES:
        if like := tuple(name for name in names if pattern.fullmatch(name)):
            return like
    return ()


def tool_candidates(chain: Chain, frames: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The frames, given with their links, that may be meant by the tool: those named like one, those at the tips."""
    outermost = {tip + 1 for tip in chain.tips}
    named = named_like_a_tool([name for name, link in frames if link])
    return tuple(dict.fromkeys([*named, *(name for name, link in frames if link in outermost)]))


def listed(names: Sequence[str]) -> str:
    """The first names of a list as text, and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def no_tool(what: str, chain: Chain, frames: Iterable[tuple[str, int]], remedy: str = "") -> str:
    """The error message where a tool is needed and the robot has none: the candidates, and how to name one."""
    names = tool_candidates(chain, list(frames)) or tip_names(chain, {})
    remedies = f"{remedy}, or load it" if remedy else "load it"
    return (
        f"{what} needs a frame: this robot has several tips and no default tool; {remedies} with tool= (command line: "
        f"--tool), one of {listed(names)}"
    )


def tip_names(chain: Chain, frames: Mapping[str, int]) -> tuple[str, ...]:
    """The names of the frames on the outermost links, or of their joints if there are none."""
    tips = {tip + 1 for tip in chain.tips}
    named = tuple(name for name, k in frames.items() if k in tips)
    return named or tuple(chain.joint_names[tip] for tip in chain.tips)
