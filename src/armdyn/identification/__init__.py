"""From a robot's log to parameters: logs, signals, estimators, excitation."""
