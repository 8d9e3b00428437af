"""The model of a robot: joints, links, and trees of them (chains are the simplest case); random samples."""

from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Limit, Mimic
from armdyn.chain.joint_forces import JointForces, Ripple
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement

__all__ = ["Chain", "Joint", "JointForces", "Limit", "Link", "Mimic", "Placement", "Ripple"]
