/*
 * Which joints are held, by dry friction or by a stop, and what happens when one comes to rest, breaks away or reaches
 * its stop: the rules of armdyn's simulator.
 *
 * A joint at rest is held if the force that this takes lies within its friction; a stop can push without bound and never
 * pull. All joints at rest are solved together, a linear complementarity problem with bounds, by principal pivoting:
 * block pivots first, then the least index alone, which always ends (Judice and Pires 1994).
 */
#include "armdyn_fmu.h"

#include <math.h>
#include <string.h>

#define BLOCK_PIVOTS 3 /* pivots on all violated joints at once; afterwards on the least index only */
#define PIVOTS 60      /* most evaluations to find the modes */
#define FORCE 1024.0   /* N m or N: large compared with the other forces, to avoid cancellation */
#define ROUNDING 1e-12 /* of the largest velocity */
#define PASSES 2       /* over the joints, because one impact can cause others */
#define ROUNDS 40      /* of impacts and suppressed rebounds at one event; a few are usual */

int armdyn_at_stop(const State *state, int k)
{
    if (state->values[STOPPING] == 0.0) return 0;
    return state->values[Q + k] <= LOWER[k] ? -1 : state->values[Q + k] >= UPPER[k] ? 1 : 0;
}

static double sign(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0; }

static bool held(const State *state, int k)
{
    return state->values[QD + k] == 0.0 && (armdyn_breakaway(state->values, k) > 0.0 || armdyn_at_stop(state, k) != 0);
}

void armdyn_settle(State *state, const bool *pinned, Modes *modes, double *qdd, double *left)
{
    const double *q = state->values + Q, *qd = state->values + QD;
    int pivot, k;
    for (k = 0; k < N; ++k) {
        modes->side[k] = sign(qd[k]);
        modes->moves[k] = held(state, k) ? 0.0 : 1.0;
    }
    for (pivot = 1;; ++pivot) {
        bool changed = false;
        armdyn_accelerations(state, q, qd, modes, qdd, left);
        if (pivot > PIVOTS) return;
        for (k = 0; k < N; ++k) {
            const double most = armdyn_breakaway(state->values, k);
            const int stop = armdyn_at_stop(state, k);
            const bool breaks = (left[k] > most && stop <= 0) || (left[k] < -most && stop >= 0);
            if (pinned[k] || !held(state, k) || (changed && pivot >= BLOCK_PIVOTS)) continue;
            if (modes->moves[k] == 0.0 ? !breaks : left[k] * modes->side[k] >= 0.0) continue;
            modes->side[k] = modes->moves[k] == 0.0 ? sign(left[k]) : 0.0;
            modes->moves[k] = 1.0 - modes->moves[k];
            changed = true;
        }
        if (!changed) return;
    }
}

/* The accelerations of a unit force on joint i, column i of the inverse inertia matrix: the difference of two
 * evaluations. */
static void column(State *state, int i, double *unit)
{
    const double *q = state->values + Q, *qd = state->values + QD;
    double force[N] = {0.0}, everywhere[N], idle[N], left[N];
    int k;
    armdyn_know_parameters(state);
    for (k = 0; k < N; ++k) everywhere[k] = 1.0;
    lockable_dynamics(q, qd, force, everywhere, state->parameters, idle, left);
    force[i] = FORCE;
    lockable_dynamics(q, qd, force, everywhere, state->parameters, unit, left);
    for (k = 0; k < N; ++k) unit[k] = (unit[k] - idle[k]) / FORCE;
}

/* Applies the impulse on joint i that reverses its velocity, scaled by the restitution, to the whole arm. */
static void strike(State *state, int i, double restitution)
{
    double unit[N], *qd = state->values + QD;
    const double before = qd[i];
    int k;
    column(state, i, unit);
    for (k = 0; k < N; ++k) qd[k] -= unit[k] / unit[i] * (1.0 + restitution) * before;
    qd[i] = -restitution * before;
}

/* Sets the velocities of joints at stops to 0 where they are only rounding errors of other joints' impacts. Otherwise
 * these joints would be brought to rest again and again, at ever smaller velocities. */
static void without_rounding(State *state)
{
    double *qd = state->values + QD, largest = 0.0;
    int k;
    for (k = 0; k < N; ++k) largest = fmax(largest, fabs(qd[k]));
    for (k = 0; k < N; ++k)
        if (armdyn_at_stop(state, k) != 0 && fabs(qd[k]) <= ROUNDING * largest) qd[k] = 0.0;
}

static bool into_stop(const State *state, int k) { return armdyn_at_stop(state, k) * state->values[QD + k] > 0.0; }

void armdyn_impacts(State *state)
{
    bool found = false;
    int pass, k;
    for (k = 0; k < N; ++k) found = found || into_stop(state, k);
    if (!found) return;
    for (pass = 0; pass < 2 * PASSES; ++pass)
        for (k = 0; k < N; ++k)
            if (into_stop(state, k)) strike(state, k, pass < PASSES ? state->values[RESTITUTION] : 0.0);
    for (k = 0; k < N; ++k) /* the remaining velocities are small */
        if (into_stop(state, k)) state->values[QD + k] = 0.0;
    without_rounding(state);
}

void armdyn_bring_to_rest(State *state, const bool *joints)
{
    int k;
    for (k = 0; k < N; ++k)
        if (joints[k] && state->values[QD + k] != 0.0) strike(state, k, 0.0);
    for (k = 0; k < N; ++k) /* and remove the velocities caused by the other impulses */
        if (joints[k]) state->values[QD + k] = 0.0;
    without_rounding(state);
}

/* Suppresses rebounds that would end within solver.step, because they would never cease; whether there was one. */
static bool end_rebounds(State *state)
{
    const bool pinned[N] = {false};
    bool ends[N], found = false;
    double qdd[N], left[N];
    Modes modes;
    int k;
    armdyn_settle(state, pinned, &modes, qdd, left);
    for (k = 0; k < N; ++k) {
        const double into = armdyn_at_stop(state, k) * qdd[k], away = -armdyn_at_stop(state, k) * state->values[QD + k];
        ends[k] = away > 0.0 && into * state->values[STEP] > 2.0 * away;
        found = found || ends[k];
    }
    if (found) armdyn_bring_to_rest(state, ends);
    return found;
}

bool armdyn_update_modes(State *state)
{
    const bool pinned[N] = {false};
    double before[2 * N], *q = state->values + Q, *qd = state->values + QD;
    int k;
    memcpy(before, q, sizeof before);
    for (k = 0; k < N && state->modes_known; ++k) {
        if (state->modes.moves[k] == 0.0) continue;
        if (armdyn_at_stop(state, k) != 0) q[k] = armdyn_at_stop(state, k) < 0 ? LOWER[k] : UPPER[k];
        if (armdyn_breakaway(state->values, k) > 0.0 && state->modes.side[k] * qd[k] < 0.0) qd[k] = 0.0;
    }
    for (k = 0; k < ROUNDS; ++k) { /* joints at stops push each other, with decreasing impulses */
        armdyn_impacts(state);
        if (!end_rebounds(state)) break;
    }
    armdyn_settle(state, pinned, &state->modes, state->values + QDD, state->left);
    state->modes_known = true;
    state->derivatives_known = false;
    return memcmp(before, q, sizeof before) != 0;
}
