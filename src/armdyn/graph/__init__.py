"""Expression graphs: hash-consed nodes, folding, programs, counting. Independent of robotics."""

from armdyn.graph.node import Graph, Node
from armdyn.graph.program import Port, Program

__all__ = ["Graph", "Node", "Port", "Program"]
