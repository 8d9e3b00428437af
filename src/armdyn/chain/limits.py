"""The limits of a robot's independent joints: their own, narrowed by those of the joints that mimic them."""

from __future__ import annotations

import math
from dataclasses import replace

from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Limit

Range = tuple[float | None, float | None]
SLIDE = 0.5  # metres in each direction for a prismatic joint without limits


def limits(chain: Chain) -> tuple[Limit, ...]:
    """The limits of the independent joints in q's order, restricted by those of the joints that mimic them.

    A follower at α q + β within its own range restricts q to ((lower - β)/α, (upper - β)/α), and its velocity limit
    restricts that of its leader. If the ranges do not overlap, the follower's range is an error of the file: it is
    ignored, and `check` reports it. Efforts are those of the leaders' motors.
    """
    found = {i: chain.joints[i].limit for i in chain.independent}
    for k, joint in enumerate(chain.joints):
        if joint.mimic is None:
            continue
        i, multiplier, _ = chain.leader(joint)
        narrowed = _both((found[i].lower, found[i].upper), follower_range(chain, k))
        if narrowed is not None:
            found[i] = replace(found[i], lower=narrowed[0], upper=narrowed[1])
        if joint.limit.velocity is not None and multiplier:
            speed = joint.limit.velocity / abs(float(multiplier))
            own = found[i].velocity
            found[i] = replace(found[i], velocity=speed if own is None else min(own, speed))
    return tuple(found.values())


def working_range(joint: Joint, limit: Limit) -> tuple[float, float]:
    """The finite range in which to try an independent joint out, given its limits.

    The limits of a revolute joint are narrowed to ±π, or where they exclude that to the nearest whole turn; a prismatic
    joint without limits moves by `SLIDE`. Limits in the wrong order count as none.
    """
    reach = math.pi if joint.revolute else SLIDE
    low = -math.inf if limit.lower is None else limit.lower
    high = math.inf if limit.upper is None else limit.upper
    if low > high:
        low, high = -math.inf, math.inf
    if not math.isfinite(low):
        low = min(-reach, high - reach)
    if not math.isfinite(high):
        high = max(reach, low + reach)
    if not joint.revolute:
        return low, high
    if max(low, -reach) < min(high, reach):
        return max(low, -reach), min(high, reach)
    return (low, min(high, low + 2 * reach)) if low > 0 else (max(low, high - 2 * reach), high)


def follower_range(chain: Chain, k: int) -> Range:
    """The range of the leader that the range of mimic joint k allows."""
    joint = chain.joints[k]
    _, multiplier, offset = chain.leader(joint)
    if not multiplier:
        return None, None
    alpha, beta = float(multiplier), float(offset)
    ends = [None if end is None else (end - beta) / alpha for end in (joint.limit.lower, joint.limit.upper)]
    return (ends[0], ends[1]) if alpha > 0 else (ends[1], ends[0])


def contradicted(chain: Chain) -> list[int]:
    """The mimic joints whose range does not overlap their leader's."""
    leaders = {k: chain.leader(joint)[0] for k, joint in enumerate(chain.joints) if joint.mimic is not None}
    own = {i: chain.joints[i].limit for i in leaders.values()}
    return [k for k, i in leaders.items() if _both((own[i].lower, own[i].upper), follower_range(chain, k)) is None]


def _both(a: Range, b: Range) -> Range | None:
    """The intersection of two ranges; None if it is empty."""
    low = max((x for x in (a[0], b[0]) if x is not None), default=None)
    high = min((x for x in (a[1], b[1]) if x is not None), default=None)
    narrows = b != (None, None)
    return None if narrows and low is not None and high is not None and not low < high else (low, high)
