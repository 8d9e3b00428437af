"""What an arm is made of: joints, links, chains; random samples of them."""

from armdyn.chain.chain import Chain
from armdyn.chain.joint import Joint, Limit
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement

__all__ = ["Chain", "Joint", "Limit", "Link", "Placement"]
