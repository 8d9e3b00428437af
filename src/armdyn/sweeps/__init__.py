"""Large parameter studies: many samples in chunks, on threads or a cluster, resumable after an interruption."""

from armdyn.sweeps.engine import sweep
from armdyn.sweeps.files import StudyFile, read_study
from armdyn.sweeps.ready import Bootstrap, Capability, DataSet, Design, Robustness, designs, postures
from armdyn.sweeps.reductions import Exceeds, Extremes, Histogram, Moments, Quantiles

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
