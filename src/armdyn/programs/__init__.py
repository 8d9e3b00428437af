"""From formulations to graphs: assembling, differentiating, counting and selecting programs."""
