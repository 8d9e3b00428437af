"""What every reader gives and every writer takes: the pieces of an arm, before there are kernels."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.chain import Chain, Placement
from armdyn.chain.snap import SnapReport


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link; link 0 is the base, link n carries the tool."""

    name: str
    link: int
    placement: Placement


@dataclass(frozen=True)
class Description:
    """An arm as its file has it: nothing snapped, every number exact."""

    name: str
    chain: Chain
    source: str = ""
    frames: tuple[Frame, ...] = ()
    snapped: SnapReport = SnapReport()  # what a reader that places frames had to snap before
    notes: tuple[str, ...] = ()  # what a reader tolerated or decided, in plain words
