"""Large parameter studies: many samples in chunks, on threads or a cluster, resumable after an interruption."""

from armdyn.sweeps.bootstrap import Bootstrap
from armdyn.sweeps.capability import Capability, postures
from armdyn.sweeps.design import Design, designs
from armdyn.sweeps.engine import sweep
from armdyn.sweeps.files import StudyFile, read_study
from armdyn.sweeps.learning import DataSet
from armdyn.sweeps.reductions import Exceeds, Extremes, Histogram, Moments, Quantiles
from armdyn.sweeps.robustness import Robustness

__all__ = [
    "Bootstrap",
    "Capability",
    "DataSet",
    "Design",
    "Exceeds",
    "Extremes",
    "Histogram",
    "Moments",
    "Quantiles",
    "Robustness",
    "StudyFile",
    "designs",
    "postures",
    "read_study",
    "sweep",
]
