"""Reports on an arm: one self-contained HTML page."""

from armdyn.report.card import card
from armdyn.report.collect import collect
from armdyn.report.page import page

__all__ = ["card", "collect", "page"]
