"""Selection of the robot in a file's tree: the whole tree or one chain, and which joints move, mimic or are locked.

A locked joint has the value given by `lock`, the value that its mimic relation gives, or its rest value: zero, or the
middle of its range if zero is outside its limits. Decisions that the caller did not ask for are listed in the notes.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from typing import Literal

from armdyn.chain.chain import named_like_a_tool
from armdyn.errors import InputError, choose
from armdyn.files.urdf_tree import RawJoint, RawMimic, RawTendon, Tree
from armdyn.options import Cut, Lock

REST: Literal["rest"] = "rest"
EVERY = "*"  # in `lock`: every joint beside the chain that is not given a value
_ROUNDING = 1e-6  # rad or m: a limit written with few digits is still the limit


@dataclass
class PartOfTree:
    """The moving joints, depth-first, the values of the locked joints, the mimic relations, and the notes."""

    start: str
    tip: str | None
    moving: list[RawJoint]
    held: dict[str, float]  # locked joints, with their values
    leaders: dict[str, RawMimic]  # moving joints that mimic a moving one
    floating: str | None = None  # the floating joint at the root; "" if the caller requested a floating base
    notes: list[str] = field(default_factory=list)
    tendons: list[RawTendon] = field(default_factory=list)  # of several moving joints


def rest(joint: RawJoint) -> float:
    """The rest value of a joint: zero, or the middle of its range if zero is outside its limits."""
    lower, upper = joint.limit.get("lower"), joint.limit.get("upper")
    if joint.kind not in ("revolute", "prismatic") or lower is None or upper is None or lower <= 0 <= upper:
        return 0.0
    return float((lower + upper) / 2)


def select(tree: Tree, cut: Cut) -> PartOfTree:
    """The joints of the requested robot; error messages give the call that works for this file."""
    start = tree.root if cut.base is None else choose(f"link of {tree.label} for base", cut.base, tree.links)
    tip = None if cut.tip is None else choose(f"link of {tree.label} for tip", cut.tip, tree.links)
    given, every = _locks(tree, cut.lock)
    if every is not None and tip is None:
        raise InputError(
            f"{tree.label}: lock={every!r} locks every joint beside a chain: select the chain, as in tip="
            f"{_example(tree)!r}, or name the joints to lock, as in lock={{{_first_moving(tree)!r}: {REST!r}}}"
        )
    notes = [
        _outside(tree.joints[name], value) for name, value in given.items() if _is_outside(tree.joints[name], value)
    ]
    mimics = _mimics(tree, notes)
    held = dict(given)
    _follow(tree, held, mimics)
    chosen = PartOfTree(start, tip, [], held, {}, notes=notes)
    path = _path(tree, start, tip)
    _float(tree, chosen, path, cut.floating)
    if tip is None:
        chosen.moving = [joint for joint in _below(tree, start) if _moves(joint, chosen)]
    else:
        chosen.moving = [joint for joint in path if _moves(joint, chosen)]
        _hold_sides(tree, chosen, mimics, every)
    _hold_outside(tree, chosen, mimics)
    chosen.moving = [joint for joint in chosen.moving if _moves(joint, chosen)]
    _check_kinds(tree, chosen)
    names = {joint.name for joint in chosen.moving}
    chosen.leaders = {name: mimics[name] for name in names if name in mimics}
    for tendon in tree.tendons:
        _tie(chosen, tendon, tree.label)
    return chosen


def _tie(chosen: PartOfTree, tendon: RawTendon, label: str) -> None:
    """Add a tendon to what moves: one of a single moving joint is a part of that joint, locked ones change its rest."""
    moving = {joint.name: k for k, joint in enumerate(chosen.moving)}
    own = tuple((name, c) for name, c in tendon.joints if name in moving)
    still = sum((c * Fraction(repr(chosen.held.get(name, 0.0))) for name, c in tendon.joints if name not in moving), 0)
    part = replace(tendon, joints=own, rest=tendon.rest - still)
    if len(own) == 1:
        k = moving[own[0][0]]
        chosen.moving[k] = part.of_joint(chosen.moving[k])
    elif own:
        chosen.tendons.append(part)
        if tendon.friction:
            lost = f"its dry friction of {float(tendon.friction):g} is not carried over, what else it has is"
            chosen.notes.append(f"{label}: tendon {tendon.name!r} couples joints: {lost}")


def _moves(joint: RawJoint, chosen: PartOfTree) -> bool:
    return joint.moving and joint.name not in chosen.held and joint.name != chosen.floating


def _locks(tree: Tree, lock: Lock) -> tuple[dict[str, float], float | str | None]:
    """The values of the named joints, and the value for every other joint beside the chain (None: not locked)."""
    if lock is None:
        return {}, None
    table: Mapping[str, float | str] = {EVERY: lock} if isinstance(lock, str) else lock
    if not isinstance(table, Mapping):
        raise InputError(f"lock must map joints to values, as in {{'joint': 0.0}}, or be {REST!r}; got {lock!r}")
    moving = [joint.name for joint in tree.joints.values() if joint.moving]
    whole = {joint.part_of for joint in tree.joints.values()} - {""}
    held: dict[str, float] = {}
    every: float | str | None = None
    for name, value in table.items():
        if name != EVERY and name not in whole:
            choose(f"joint of {tree.label} to lock", name, moving)
        if value != REST and (not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value)):
            raise InputError(f"joint {name!r} cannot be locked at {value!r}; expected a finite number or {REST!r}")
        if name == EVERY:
            every = value
            continue
        if name in whole:
            if value not in (REST, 0):
                raise InputError(f"joint {name!r} has several values and can be locked only at {REST!r}, got {value!r}")
            held |= {joint.name: 0.0 for joint in tree.joints.values() if joint.part_of == name}
            continue
        joint = tree.joints[name]
        if not joint.single and value not in (REST, 0):
            raise InputError(f"joint {name!r} is {joint.kind} and can be locked only at {REST!r}, got {value!r}")
        held[name] = rest(joint) if value == REST else float(value)
    return held, every


def _is_outside(joint: RawJoint, value: float) -> bool:
    lower, upper = joint.limit.get("lower"), joint.limit.get("upper")
    if joint.kind not in ("revolute", "prismatic") or lower is None or upper is None or lower >= upper:
        return False
    return not lower - _ROUNDING <= value <= upper + _ROUNDING


def _outside(joint: RawJoint, value: float) -> str:
    unit, hint = ("m", "") if joint.kind == "prismatic" else ("rad", ", values are in radians")
    lower, upper = (float(joint.limit[key]) for key in ("lower", "upper"))
    return f"{joint.name} is locked at {value:g} {unit}, outside its limits {lower:g} to {upper:g}{hint}"


def _mimics(tree: Tree, notes: list[str]) -> dict[str, RawMimic]:
    """The mimic relation of every joint that has one, resolved to a leader that mimics no other joint."""
    found = {}
    missing = {name: j.mimic.joint for name, j in tree.joints.items() if j.mimic and j.mimic.joint not in tree.joints}
    if missing:
        shown = ", ".join(f"{name} ({leader!r})" for name, leader in missing.items())
        notes.append(f"joints that mimic a joint which is not in the file are taken as independent: {shown}")
    for name, joint in tree.joints.items():
        if joint.mimic is None or not joint.moving or name in missing:
            continue
        leader, factor, offset = joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset
        seen = [name]
        while True:
            at = f"{tree.label}, line {joint.line}: joint {name!r}"
            if leader in seen:
                raise InputError(f"{at} mimics itself: {' > '.join([*seen, leader])}")
            further = tree.joints[leader].mimic
            if further is None or not tree.joints[leader].moving or leader in missing:
                break
            seen.append(leader)
            leader, offset, factor = further.joint, offset + factor * further.offset, factor * further.multiplier
        if not tree.joints[leader].single:
            raise InputError(f"{at} mimics {leader!r}, which is {tree.joints[leader].kind} and has no single value")
        found[name] = RawMimic(leader, factor, offset)
    return found


def _follow(tree: Tree, held: dict[str, float], mimics: Mapping[str, RawMimic]) -> None:
    """Lock the joints that mimic a fixed or locked joint."""
    for name, mimic in mimics.items():
        leader = tree.joints[mimic.joint]
        if name not in held and (mimic.joint in held or not leader.moving):
            value = Fraction(repr(held.get(mimic.joint, 0.0)))
            held[name] = float(mimic.multiplier * value + mimic.offset)


def _below(tree: Tree, start: str) -> list[RawJoint]:
    """All joints below a link, depth-first, siblings in file order."""
    found: list[RawJoint] = []
    waiting = [*reversed(tree.below[start])]
    while waiting:
        joint = waiting.pop()
        found.append(joint)
        waiting.extend(reversed(tree.below[joint.child]))
    return found


def _path(tree: Tree, start: str, tip: str | None) -> list[RawJoint]:
    """The joints from one link down to another; none without a tip."""
    path: list[RawJoint] = []
    link = start if tip is None else tip
    while link != start:
        joint = tree.above.get(link)
        if joint is None:
            raise InputError(f"{tree.label}: tip {tip!r} is not below base {start!r}; the root link is {tree.root!r}")
        path.append(joint)
        link = joint.parent
    return path[::-1]


def _float(tree: Tree, chosen: PartOfTree, path: list[RawJoint], asked: bool | None) -> None:
    """Decide whether the base floats, and by which joint of the file."""
    candidates = path if chosen.tip is not None else _below(tree, chosen.start)
    moving = [joint for joint in candidates if _moves(joint, chosen)]
    first = moving[0] if moving else None
    if first is not None and first.kind == "floating":
        carried = sum(_moves(joint, chosen) for joint in _below(tree, first.child))
        alone = chosen.tip is not None or len(moving) == 1 + carried
        if asked is False:
            chosen.held[first.name] = 0.0
            chosen.notes.append(f"the floating joint {first.name!r} is locked at its origin (floating=False)")
        elif alone:
            chosen.floating = first.name
        return
    if asked:
        chosen.floating = ""


def _hold_sides(tree: Tree, chosen: PartOfTree, mimics: Mapping[str, RawMimic], every: float | str | None) -> None:
    """Lock the joints that the chain carries beside its own; an error if `lock` does not allow it."""
    own = {joint.name for joint in chosen.moving}
    root = _carrying(tree, chosen)
    beside = [j for j in _below(tree, root) if j.name not in own and _moves(j, chosen)] if root is not None else []
    leaders = [tree.joints[mimics[j.name].joint] for j in chosen.moving if j.name in mimics]
    beside += [j for j in leaders if j.name not in own and _moves(j, chosen) and j not in beside]
    if not beside:
        return
    if every is None:
        raise InputError(_unlocked(tree, chosen, beside))
    for joint in beside:
        if joint.name not in mimics:
            chosen.held[joint.name] = rest(joint) if every == REST or not joint.single else float(every)
    _follow(tree, chosen.held, mimics)
    for joint in beside:  # a joint that mimics a joint of the chain is locked for the rest value of that joint
        if joint.name not in chosen.held:
            mimic = mimics[joint.name]
            value = mimic.multiplier * Fraction(repr(rest(tree.joints[mimic.joint]))) + mimic.offset
            chosen.held[joint.name] = float(value)
    shown = ", ".join(_at(j, chosen.held[j.name]) for j in beside)
    chosen.notes.append(f"locked beside the chain: {shown}")


def _at(joint: RawJoint, value: float) -> str:
    middle = " (mid-range, zero is outside its limits)" if value and value == rest(joint) else ""
    return f"{joint.name} at {value:g}{middle}"


def _carrying(tree: Tree, chosen: PartOfTree) -> str | None:
    """The first moving link of the chain: everything below it is carried."""
    if chosen.floating == "":
        return chosen.start
    if chosen.floating:
        return tree.joints[chosen.floating].child
    return chosen.moving[0].child if chosen.moving else None


def _hold_outside(tree: Tree, chosen: PartOfTree, mimics: Mapping[str, RawMimic]) -> None:
    """Lock the joints outside the robot that affect it at rest: those above the base, and leaders of mimic joints."""
    own = {joint.name for joint in chosen.moving}
    above = _path(tree, tree.root, chosen.start)
    leaders = [tree.joints[mimics[j.name].joint] for j in chosen.moving if j.name in mimics]
    locked = []
    for joint in [*above, *leaders]:
        if joint.moving and joint.name not in own and joint.name not in chosen.held and joint.name not in mimics:
            chosen.held[joint.name] = rest(joint)
            locked.append(joint)
    _follow(tree, chosen.held, mimics)
    if locked:
        shown = ", ".join(_at(joint, chosen.held[joint.name]) for joint in locked)
        chosen.notes.append(f"locked outside the robot: {shown}; lock={{...}} sets other values")


def _check_kinds(tree: Tree, chosen: PartOfTree) -> None:
    for joint in chosen.moving:
        if not joint.single:
            where = "" if joint.kind != "floating" else ", and a floating joint that carries all others"
            raise InputError(
                f"{tree.label}: joint {joint.name!r} is {joint.kind}; supported are revolute, continuous, prismatic, "
                f"planar and ball joints{where}. Lock it with {_both(tree, chosen, {joint.name: REST})}"
            )
    if not chosen.moving:
        between = f"between {chosen.start!r} and {chosen.tip!r}" if chosen.tip else f"below link {chosen.start!r}"
        raise InputError(f"{tree.label}: no moving joint {between}; an arm needs at least one")


def _unlocked(tree: Tree, chosen: PartOfTree, beside: list[RawJoint]) -> str:
    """The error message for joints beside the chain without a value, with the calls that solve it."""
    names = ", ".join(joint.name for joint in beside[:20]) + (f" and {len(beside) - 20} more" * (len(beside) > 20))
    return (
        f"{tree.label}: the chain to {chosen.tip!r} also carries the moving joints {names}. Lock them at rest with "
        f"{_both(tree, chosen, REST)}, give them values, as in lock={{{beside[0].name!r}: 0.0}}, or load the whole "
        "robot, without tip"
    )


def _both(tree: Tree, chosen: PartOfTree, lock: dict[str, str] | str) -> str:
    """The same call in Python and on the command line."""
    ends = {"base": None if chosen.start == tree.root else chosen.start, "tip": chosen.tip}
    known = {key: value for key, value in ends.items() if value is not None}
    python = ", ".join([*(f"{key}={value!r}" for key, value in known.items()), f"lock={lock!r}"])
    words = [lock] if isinstance(lock, str) else [f"{name}={value}" for name, value in lock.items()]
    options = [f"--{key} {shlex.quote(value)}" for key, value in known.items()]
    options += [f"--lock {shlex.quote(word)}" for word in words]
    source = "text" if tree.label == "URDF text" else repr(tree.label)
    return f"armdyn.load({source}, {python}) (command line: {' '.join(options)})"


def _first_moving(tree: Tree) -> str:
    return next((joint.name for joint in tree.joints.values() if joint.moving), "joint")


def _example(tree: Tree) -> str:
    """A link that could be the tip: one named like a tool, one that carries fingers, or the end of the first branch.

    Fingers are moving joints on one link that carry no other moving joint, such as those of a Panda's hand.
    """
    moving = [joint for joint in tree.joints.values() if joint.moving]
    carried = [joint.child for joint in moving] + [
        below.child for joint in moving for below in _below(tree, joint.child) if not below.moving
    ]
    if named := named_like_a_tool(carried):
        return named[0]
    ends = [joint for joint in moving if not any(below.moving for below in _below(tree, joint.child))]
    hands = Counter(joint.parent for joint in ends if joint.parent != tree.root)
    hand = next((link for link, fingers in hands.items() if fingers > 1), None)
    return hand or (ends[0].child if ends else tree.root)
