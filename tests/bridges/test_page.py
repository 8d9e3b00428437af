"""The examples of the documentation that need JAX or PyTorch run, and their assertions hold."""

from __future__ import annotations

import pytest

from pages import ROOT, blocks

BLOCKS = [
    b for b in blocks(ROOT / "docs" / "howto" / "bridges.md", "python") if "import jax" in b or "import torch" in b
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: "jax" if "import jax" in block else "torch")
def test_an_example_runs(block):
    exec(compile(block, "bridges.md", "exec"), {})


def test_there_is_one_for_each():
    assert len(BLOCKS) == 2
