/*
 * A step of a Runge-Kutta method (the coefficients are in the arm's own file) with joints that stick, slide and reach their stops.
 *
 * In constant modes the motion is smooth, so the method keeps its order. The step is split where a sliding joint comes to
 * rest or a joint reaches its stop; the time is found by regula falsi (Illinois) on the length of the step. The
 * breakaway of a joint under a growing load is detected at the beginning of the next step, as in armdyn's simulator.
 */
#include "armdyn_fmu.h"

#include <math.h>
#include <string.h>

#define SUBSTEPS 24 /* largest number of parts of one step; the last part is not split again */
#define PINS 40     /* how often joints that return at once are brought to rest; a few are usual */
#define TRIALS 30   /* at most, to find the time of an event; 5 to 8 are usual */
#define CLOSE 1e-13 /* relative velocity below which a joint counts as having come to rest */
#define HUGE_MARGIN 1e300

typedef struct {
    double q[N], qd[N];
} Motion;

/* A search for the first event: the bracket of its time, the margins there, and the end that moved last. */
typedef struct {
    double low, high, at_low, at_high, level;
    int last;
    bool hit;
} Search;

static void runge_kutta(State *state, const Modes *modes, const double *first, double h, Motion *end)
{
    const double *q0 = state->values + Q, *qd0 = state->values + QD;
    double rates[STAGES][N], accelerations[STAGES][N], q[N], left[N];
    int k;
    memcpy(rates[0], qd0, sizeof rates[0]);
    memcpy(accelerations[0], first, sizeof accelerations[0]);
    for (k = 1; k < STAGES; ++k) {
        next_stage(k, q0, qd0, rates, accelerations, h, q, rates[k]);
        armdyn_accelerations(state, q, rates[k], modes, accelerations[k], left);
    }
    next_stage(STAGES, q0, qd0, rates, accelerations, h, end->q, end->qd);
}

/* The smallest margin of any joint to rest and to its stops, except for those it had at the start of the part. */
static double margin(const State *state, const Modes *modes, const double *q, const double *qd)
{
    double least = HUGE_MARGIN;
    int k;
    for (k = 0; k < N; ++k) {
        if (armdyn_breakaway(state->values, k) > 0.0 && state->values[QD + k] != 0.0)
            least = fmin(least, qd[k] * modes->side[k]);
        if (state->values[STOPPING] == 0.0) continue;
        if (armdyn_at_stop(state, k) >= 0) least = fmin(least, q[k] - LOWER[k]);
        if (armdyn_at_stop(state, k) <= 0) least = fmin(least, UPPER[k] - q[k]);
    }
    return least;
}

/* Joints that would leave their rest against their own friction, or pass their stop, within this step. */
static bool returning(const State *state, const Modes *modes, const Motion *end, bool *returns)
{
    bool found = false;
    int k;
    for (k = 0; k < N; ++k) {
        const int stop = armdyn_at_stop(state, k);
        returns[k] = state->values[QD + k] == 0.0 && end->qd[k] * modes->side[k] < 0.0;
        if (stop != 0 && modes->moves[k] != 0.0)
            returns[k] = returns[k] || (stop < 0 ? end->q[k] < LOWER[k] : end->q[k] > UPPER[k]);
        found = found || returns[k];
    }
    return found;
}

/* Narrows the bracket after a trial of this length, halving the margin at an end that stays twice; the next length. */
static double aim(Search *search, double length, double now)
{
    if (now < 0.0) {
        if (search->last < 0) search->at_low /= 2.0;
        search->high = length, search->at_high = now, search->last = -1;
    } else {
        if (search->last > 0) search->at_high /= 2.0;
        search->low = length, search->at_low = now, search->last = 1;
    }
    return search->high - search->at_high * (search->high - search->low) / (search->at_high - search->at_low);
}

/* The state at the end of a part of the step: a joint that came to rest has velocity 0, one that reached a stop is there. */
static void accept(State *state, const Modes *modes, const Search *search, double now, Motion *end)
{
    const double near = fmax(now, search->level);
    int k;
    for (k = 0; k < N; ++k) {
        const int stop = armdyn_at_stop(state, k);
        const bool slid = armdyn_breakaway(state->values, k) > 0.0 && state->values[QD + k] != 0.0;
        if (modes->moves[k] == 0.0 || (search->hit && slid && end->qd[k] * modes->side[k] <= near)) end->qd[k] = 0.0;
        if (!search->hit || state->values[STOPPING] == 0.0) continue;
        if (stop >= 0 && end->q[k] - LOWER[k] <= near) end->q[k] = LOWER[k];
        if (stop <= 0 && UPPER[k] - end->q[k] <= near) end->q[k] = UPPER[k];
    }
    memcpy(state->values + Q, end->q, sizeof end->q);
    memcpy(state->values + QD, end->qd, sizeof end->qd);
}

/* One part of a step, up to the first event in it if it may be split; returns its length. */
static double part(State *state, double rest, bool may_cut, bool *pinned)
{
    double first[N], left[N], length = rest, now;
    int trial, pins;
    Search search = {0.0, 0.0, 0.0, 0.0, 0.0, 0, false};
    Modes modes;
    Motion end;
    bool returns[N];
    for (pins = 0;; ++pins) { /* a joint that returns at once stays for this step */
        int k;
        armdyn_impacts(state);
        armdyn_settle(state, pinned, &modes, first, left);
        runge_kutta(state, &modes, first, length, &end);
        if (pins > PINS || !returning(state, &modes, &end, returns)) break;
        for (k = 0; k < N; ++k) pinned[k] = pinned[k] || returns[k];
        armdyn_bring_to_rest(state, returns);
    }
    search.high = rest;
    search.at_low = margin(state, &modes, state->values + Q, state->values + QD);
    now = margin(state, &modes, end.q, end.qd);
    search.hit = now < 0.0;
    if (search.hit) search.level = CLOSE * fmax(fmin(-now, HUGE_MARGIN), search.at_low);
    for (trial = 1; trial < TRIALS && search.hit && may_cut; ++trial) {
        if (fabs(now) <= search.level || search.high - search.low <= 1e-15 * search.high) break;
        length = aim(&search, length, now);
        runge_kutta(state, &modes, first, length, &end);
        now = margin(state, &modes, end.q, end.qd);
    }
    accept(state, &modes, &search, now, &end);
    return length;
}

void armdyn_take_step(State *state, double h)
{
    bool pinned[N] = {false};
    double rest = h;
    int k;
    for (k = 0; k < SUBSTEPS && rest > 0.0; ++k) rest -= part(state, rest, k < SUBSTEPS - 1, pinned);
    state->derivatives_known = false;
}
