"""The robot model: joints, links and kinematic trees (serial chains are the simplest), and random samples of them."""

from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Limit, Mimic
from armdyn.chain.joint_forces import JointForces, Ripple
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement
from armdyn.chain.servo import Servo

__all__ = ["Chain", "Joint", "JointForces", "Limit", "Link", "Mimic", "Placement", "Ripple", "Servo"]
