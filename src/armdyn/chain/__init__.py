"""The robot model: joints, links and kinematic trees (serial chains are the simplest), and random samples of them."""

from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, JointForces, Limit, Link, Mimic, Placement, Ripple, Tendon
from armdyn.chain.servo import Servo

__all__ = ["Chain", "Joint", "JointForces", "Limit", "Link", "Mimic", "Placement", "Ripple", "Servo", "Tendon"]
