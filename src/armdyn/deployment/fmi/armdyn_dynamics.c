/* The equations of motion with friction and payload, in given modes of the joints. */
#include "armdyn_fmu.h"

#include <math.h>
#include <string.h>

#define NEARLY_NONE 1e-12 /* N m or N: dry friction of a joint that has none without a load */
#define SLACK 1e-9        /* rad/s, rad, N m (or m/s, m, N) and relative: how far beyond its event a joint may be */

void armdyn_start(State *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->values, START, sizeof START);
    state->mode = INSTANTIATED;
}

void armdyn_know_parameters(State *state)
{
    const double *values = state->values;
    if (state->parameters_known) return;
    parameters(values + MASS, values + COM, values + INERTIA, state->parameters);
    state->parameters_known = true;
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

double armdyn_breakaway(const double *values, int k)
{
    double total = 0.0;
    int j;
    for (j = 0; j < JOINTS; ++j) {
        const double coulomb = values[COULOMB + j], at_rest = values[STATIC + j];
        if (ALONG[j] == k)
            total += RATIO[j] * (at_rest > 0.0 && values[STRIBECK + j] > 0.0 ? at_rest : fmax(at_rest, coulomb));
    }
    return total == 0.0 && LOSS[k] > 0.0 ? NEARLY_NONE : total;
}

/* Springs and the like and viscous friction are taken off the motors' forces, then the dry friction of joints that
 * slide, then what a gear loses of its load. */
void armdyn_accelerations(State *state, const double *q, const double *qd, const Modes *modes, double *qdd, double *left)
{
    const double *values = state->values;
    double pushed[N], moving[N];
    int j, k;
    armdyn_know_parameters(state);
    joint_forces(q, qd, pushed);
    for (k = 0; k < N; ++k) pushed[k] = values[TAU + k] - pushed[k];
    for (j = 0; j < JOINTS; ++j) pushed[ALONG[j]] -= RATIO[j] * RATIO[j] * values[VISCOUS + j] * qd[ALONG[j]];
    memcpy(moving, pushed, sizeof moving);
    for (j = 0; j < JOINTS; ++j)
        moving[ALONG[j]] -= RATIO[j] * dry_friction(values, j, RATIO[j] * qd[ALONG[j]]) * modes->side[ALONG[j]];
    for (k = 0; k < N; ++k)
        if (LOSS[k] > 0.0) moving[k] /= 1.0 + LOSS[k] * (moving[k] < 0.0 ? -modes->side[k] : modes->side[k]);
    lockable_dynamics(q, qd, moving, modes->moves, state->parameters, qdd, left);
    for (k = 0; k < N; ++k)
        if (LOSS[k] > 0.0) left[k] /= 1.0 + LOSS[k] / armdyn_breakaway(values, k) * fabs(pushed[k] - left[k]);
}

/* How far a joint is from its next event. What is just beyond counts as before, so that no joint is at an event where
 * the one before has left it. */
static double indicator(const State *state, int k)
{
    const double q = state->values[Q + k], most = armdyn_breakaway(state->values, k);
    const int stop = armdyn_at_stop(state, k);
    double distance = 1.0;
    if (state->modes.moves[k] == 0.0) {
        if (stop <= 0) distance = fmin(distance, most - state->left[k] + SLACK * (1.0 + most));
        if (stop >= 0) distance = fmin(distance, most + state->left[k] + SLACK * (1.0 + most));
        return distance;
    }
    if (most > 0.0 && state->modes.side[k] != 0.0) distance = state->modes.side[k] * state->values[QD + k] + SLACK;
    if (state->values[STOPPING] != 0.0) distance = fmin(distance, fmin(q - LOWER[k], UPPER[k] - q) + SLACK);
    return distance;
}

void armdyn_derivatives(State *state)
{
    const bool pinned[N] = {false};
    int k;
    if (state->derivatives_known) return;
    memcpy(state->values + DQ, state->values + QD, N * sizeof(double));
    if (state->modes_known)
        armdyn_accelerations(state, state->values + Q, state->values + QD, &state->modes, state->values + QDD, state->left);
    else
        armdyn_settle(state, pinned, &state->modes, state->values + QDD, state->left);
    for (k = 0; k < N; ++k) state->values[INDICATOR + k] = indicator(state, k);
    state->derivatives_known = true;
}
