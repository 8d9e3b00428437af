"""Motion along a given path: as fast as the limits of motors, tool and grip allow.

A path fixes q(s); what is left to choose is the speed along it. With x = ṡ, z = ṡ² and u = s̈ the motion is

    q̇ = q′ x,    q̈ = q′ u + q″ z,    τ = a(s) u + b(s) z + g(s) + f(s, x),

with a = H q′, b = H q″ + C(q, q′) q′ and the friction f. For a given place and speed every limit is an interval of u,
and friction may have any dependence on the speed: viscous friction, which is not convex in (u, z), needs no
approximation. Two sweeps over the path (reachability analysis; Pham & Pham 2018, there with linear programs in (u, z))
give the fastest motion: backwards, the largest speeds from which the end can still be reached; forwards, the largest
acceleration that stays below.

`path` makes a path of what users have, `constraints` has the limits along it, `sweep` the two sweeps, `compiled` the
same as machine code; `time_optimal` makes the trajectory. `rates` holds limits of jerk and torque rate, which no sweep
can, `doubt` has the arms of uncertain parameters, and `free` finds the path as well, between two configurations.
"""

from armdyn.motion.constraints import Grip, MotionLimits
from armdyn.motion.free import fastest_path
from armdyn.motion.path import Path
from armdyn.motion.time_optimal import TimeOptimal, time_optimal

__all__ = ["Grip", "MotionLimits", "Path", "TimeOptimal", "fastest_path", "time_optimal"]
