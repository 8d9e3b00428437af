"""Deployment: an arm's dynamics as one folder that builds and tests itself on the machine it is for."""

from armdyn.deployment.deploy import TARGETS, deploy
from armdyn.deployment.request import Request

__all__ = ["TARGETS", "Request", "deploy"]
