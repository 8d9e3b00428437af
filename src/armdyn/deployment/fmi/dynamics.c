/* The equations of motion with friction and payload, and their integration. */
#include "fmu.h"

#include <math.h>
#include <string.h>

void start(State *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->values, START, sizeof state->values);
    state->mode = INSTANTIATED;
}

/* Dry friction while moving: from static to Coulomb friction along a Stribeck curve, where there is one. */
static double dry_friction(const double *values, int j, double rate)
{
    const double coulomb = values[COULOMB + j], at_rest = values[STATIC + j], stribeck = values[STRIBECK + j];
    double part, power = 1.0;
    int k;
    if (!(at_rest > 0.0 && stribeck > 0.0)) return coulomb;
    part = rate / stribeck;
    for (k = 0; k < EXPONENT[j]; k += 2) power *= part * part;
    return coulomb + (at_rest - coulomb) / (1.0 + power);
}

/* What the other forces at the joints leave of the motors': springs and the like, friction whose sign changes
 * smoothly, and what a gear loses of its load. */
static void after_joint_forces(const double *values, const double *q, const double *qd, double *tau)
{
    double forces[N];
    int j, k;
    joint_forces(q, qd, forces);
    for (k = 0; k < N; ++k) tau[k] -= forces[k];
    for (j = 0; j < JOINTS; ++j) {
        const double rate = RATIO[j] * qd[ALONG[j]];
        const double dry = dry_friction(values, j, rate) * tanh(rate / values[SMOOTH]);
        tau[ALONG[j]] -= RATIO[j] * (values[VISCOUS + j] * rate + dry);
    }
    for (k = 0; k < N; ++k)
        if (LOSS[k] > 0.0) {
            const double side = tanh(qd[k] / values[SMOOTH]);
            tau[k] /= 1.0 + LOSS[k] * (tau[k] < 0.0 ? -side : side);
        }
}

static void accelerations(State *state, const double *q, const double *qd, double *qdd)
{
    double tau[N];
    memcpy(tau, state->values + TAU, sizeof tau);
    if (!state->parameters_known) {
        parameters(state->values + MASS, state->values + COM, state->values + INERTIA, state->parameters);
        state->parameters_known = true;
    }
    after_joint_forces(state->values, q, qd, tau);
    forward_dynamics(q, qd, tau, state->parameters, qdd);
}

void derivatives(State *state)
{
    if (state->derivatives_known) return;
    memcpy(state->values + DQ, state->values + QD, N * sizeof(double));
    accelerations(state, state->values + Q, state->values + QD, state->values + QDD);
    state->derivatives_known = true;
}

void runge_kutta_4(State *state, double h)
{
    static const double ahead[4] = {0.0, 0.5, 0.5, 1.0}, weight[4] = {1.0, 2.0, 2.0, 1.0};
    double q[N], qd[N], qdd[N], dq_sum[N], dqd_sum[N];
    double *q0 = state->values + Q, *qd0 = state->values + QD;
    int stage, i;
    for (i = 0; i < N; ++i) qd[i] = qdd[i] = dq_sum[i] = dqd_sum[i] = 0.0;
    for (stage = 0; stage < 4; ++stage) {
        for (i = 0; i < N; ++i) q[i] = q0[i] + ahead[stage] * h * qd[i];
        for (i = 0; i < N; ++i) qd[i] = qd0[i] + ahead[stage] * h * qdd[i];
        accelerations(state, q, qd, qdd);
        for (i = 0; i < N; ++i) {
            dq_sum[i] += weight[stage] * qd[i];
            dqd_sum[i] += weight[stage] * qdd[i];
        }
    }
    for (i = 0; i < N; ++i) {
        q0[i] += h / 6.0 * dq_sum[i];
        qd0[i] += h / 6.0 * dqd_sum[i];
    }
    state->derivatives_known = false;
}
