"""The common data of all readers and writers of robot files."""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.chain import Chain, Placement
from armdyn.chain.snap import SnapReport


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link; link 0 is the base."""

    name: str
    link: int
    placement: Placement


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
