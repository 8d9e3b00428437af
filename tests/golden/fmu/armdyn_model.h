/* This arm: its size, the start values of its variables, and its dynamics. */
#ifndef ARMDYN_MODEL_H
#define ARMDYN_MODEL_H

#include <math.h>

#include "planar3.h"

#define TOKEN "{aa36a2acbcccfb6b0dd5468b9d4b089a}"
#define N 3 /* degrees of freedom */
#define P 9 /* run-time parameters */
#define PAYLOAD 1 /* whether there are variables for a payload */
#define JOINTS 3 /* joints with variables for friction */
#define STOPS 0 /* whether a joint has limits, and there are variables for stops */
#define SETTINGS 23 /* parameters that an importer may set */

/* For each joint with friction: its degree of freedom, the ratio of their velocities, and the exponent of the velocity
 * in the Stribeck curve. */
static const int ALONG[JOINTS + 1] = {0, 1, 2, 0};
static const double RATIO[JOINTS + 1] = {1.0, 1.0, 1.0, 0.0};
static const int EXPONENT[JOINTS + 1] = {2, 2, 2, 0};
/* For each degree of freedom: the coefficient of load-dependent friction. */
static const double LOSS[N] = {0.0, 0.0, 0.0};

/* Joint limits. */
static const double LOWER[N] = {-INFINITY, -INFINITY, -INFINITY};
static const double UPPER[N] = {INFINITY, INFINITY, INFINITY};

static const double START[] = {
    0.0, /* time */
    0.0, /* joint1.tau */
    0.0, /* joint2.tau */
    0.0, /* joint3.tau */
    0.0, /* joint1.q */
    0.0, /* joint2.q */
    0.0, /* joint3.q */
    0.0, /* joint1.qd */
    0.0, /* joint2.qd */
    0.0, /* joint3.qd */
    0.0, /* der(joint1.q) */
    0.0, /* der(joint2.q) */
    0.0, /* der(joint3.q) */
    0.0, /* joint1.qdd */
    0.0, /* joint2.qdd */
    0.0, /* joint3.qdd */
    0.0, /* joint1.event */
    0.0, /* joint2.event */
    0.0, /* joint3.event */
    0.0, /* payload.mass */
    0.0, /* payload.com.x */
    0.0, /* payload.com.y */
    0.0, /* payload.com.z */
    0.0, /* payload.inertia.xx */
    0.0, /* payload.inertia.yy */
    0.0, /* payload.inertia.zz */
    0.0, /* payload.inertia.xy */
    0.0, /* payload.inertia.xz */
    0.0, /* payload.inertia.yz */
    0.0, /* joint1.viscous */
    0.0, /* joint2.viscous */
    0.0, /* joint3.viscous */
    0.0, /* joint1.coulomb */
    0.0, /* joint2.coulomb */
    0.0, /* joint3.coulomb */
    0.0, /* joint1.static */
    0.0, /* joint2.static */
    0.0, /* joint3.static */
    0.0, /* joint1.stribeck */
    0.0, /* joint2.stribeck */
    0.0, /* joint3.stribeck */
    0.001, /* solver.step */
};

static inline void parameters(const double *mass, const double *com, const double *inertia, double *values)
{
    (void)mass, (void)com, (void)inertia, (void)values;
    planar3_payload_parameters(mass, com, inertia, planar3_parameters, values);
}

/* The motor torques that springs, torque offsets and torque ripple require. */
static inline void joint_forces(const double *q, const double *qd, double *forces)
{
    (void)q, (void)qd;
    for (int k = 0; k < N; ++k) forces[k] = 0.0;
}

/* Accelerations under given forces, where `free` is 1 for joints that may move and 0 for those that are held; `left` is
 * the force that holds a joint, or drives one that moves. */
static inline void lockable_dynamics(const double *q, const double *qd, const double *tau, const double *free,
                                     const double *values, double *qdd, double *left)
{
    (void)values;
    planar3_lockable_dynamics(q, qd, tau, free, values, qdd, left);
}

/* The step of RK4 goes from stage to stage: the k-th begins where this leads from the slopes of those before it, and
 * the step ends where it leads from all of them (k = STAGES). */
#define STAGES 4
static inline void next_stage(int k, const double *q, const double *qd, double rates[][N], double accelerations[][N],
                              double h, double *q_next, double *qd_next)
{
    switch (k) {
    case 1: planar3_stage_1(q, qd, rates[0], accelerations[0], &h, q_next, qd_next); break;
    case 2: planar3_stage_2(q, qd, rates[0], accelerations[0], rates[1], accelerations[1], &h, q_next, qd_next); break;
    case 3: planar3_stage_3(q, qd, rates[0], accelerations[0], rates[1], accelerations[1], rates[2], accelerations[2], &h, q_next, qd_next); break;
    case 4: planar3_end_of_step(q, qd, rates[0], accelerations[0], rates[1], accelerations[1], rates[2], accelerations[2], rates[3], accelerations[3], &h, q_next, qd_next); break;
    }
}

#endif
