"""Reports on an arm: one self-contained HTML page, and a summary for the terminal."""

from armdyn.report.card import card
from armdyn.report.collect import collect
from armdyn.report.page import page
from armdyn.report.terminal import summary

__all__ = ["card", "collect", "page", "summary"]
