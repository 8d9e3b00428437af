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

/* What friction leaves of the torques: viscous friction, and a Stribeck curve whose sign changes smoothly. */
static void after_friction(const double *values, const double *qd, double *tau)
{
    int j;
    for (j = 0; j < JOINTS; ++j) {
        const double rate = RATIO[j] * qd[ALONG[j]];
        double dry = values[COULOMB + j];
        if (values[STATIC + j] > dry && values[STRIBECK + j] > 0.0) {
            const double part = rate / values[STRIBECK + j];
            dry += (values[STATIC + j] - dry) / (1.0 + part * part);
        }
        tau[ALONG[j]] -= RATIO[j] * (values[VISCOUS + j] * rate + dry * tanh(rate / values[SMOOTH]));
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
    after_friction(state->values, qd, tau);
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
