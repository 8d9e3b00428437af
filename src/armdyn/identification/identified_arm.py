"""An arm with identified links and drives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import exact
from armdyn.arm import Arm
from armdyn.chain import Link


def identified_arm(arm: Arm, natural: NDArray[np.float64], extras: Mapping[str, float]) -> Arm:
    """The same geometry with links of these natural parameters, (n, 10), and these rotors and frictions."""
    links = tuple(Link.from_natural(tuple(exact(float(x)) for x in row)) for row in natural)
    joints = []
    for k, joint in enumerate(arm.given.joints, 1):
        rotor, viscous, coulomb = (extras.get(f"{symbol}{k}") for symbol in ("Ia", "fv", "fc"))
        joints.append(
            replace(
                joint,
                rotor_inertia=joint.rotor_inertia if rotor is None else exact(rotor),
                viscous=joint.viscous if viscous is None else exact(viscous),
                coulomb=joint.coulomb if coulomb is None else exact(coulomb),
            )
        )
    given = replace(arm.given, links=links, joints=tuple(joints))
    return replace(arm, given=given, source=f"{arm.source}; links and drives identified from a log".lstrip("; "))
