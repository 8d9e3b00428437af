"""From formulations to graphs: assembling, differentiating, counting and choosing programs."""
