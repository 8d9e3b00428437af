"""Deployment: a folder with the generated code of an arm's dynamics, which `make test` builds and tests."""

from armdyn.deployment.deploy import TARGETS, deploy
from armdyn.deployment.request import Request

__all__ = ["TARGETS", "Request", "deploy"]
