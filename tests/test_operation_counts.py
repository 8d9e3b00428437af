"""Operations of the shortest programs, in a golden file whose numbers may only fall.

`benchmarks/operation_counts.py` does the same for the whole catalogue and every quantity.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import armdyn

GOLDEN = Path(__file__).parent / "golden" / "operations.json"
QUANTITIES = ("inertia_matrix", "bias", "gravity_load", "inverse_dynamics", "forward_dynamics", "jacobian", "regressor")
ARMS = ("puma560", "ur5", "panda")


@pytest.mark.parametrize("name", ARMS)
def test_no_program_grows(name):
    arm = armdyn.load(name)
    found = {quantity: getattr(arm, quantity).program.operations.total for quantity in QUANTITIES}
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps({**known, name: found}, indent=1, sort_keys=True) + "\n")
        return
    grown = {quantity: (known[name][quantity], now) for quantity, now in found.items() if now > known[name][quantity]}
    assert not grown, f"operations before and now: {grown}"
    shrunk = {quantity: (known[name][quantity], now) for quantity, now in found.items() if now < known[name][quantity]}
    assert not shrunk, f"shorter programs, write them down with ARMDYN_UPDATE_GOLDEN=1: {shrunk}"
