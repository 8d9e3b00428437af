/*
 * FMI 3.0 model exchange and co-simulation of an arm: torques in, positions, velocities and accelerations out.
 *
 * armdyn_model.h defines the number of joints, the start values and the dynamics. The variables are stored in one array, in
 * the order of the enumeration below, which is also the order of their value references.
 */
#ifndef ARMDYN_FMU_H
#define ARMDYN_FMU_H

#include <stdbool.h>

#include "fmi3Functions.h"
#include "armdyn_model.h"

enum {
    TIME = 0,
    TAU = 1,
    Q = TAU + N,
    QD = Q + N,
    DQ = QD + N, /* the derivatives of q, which are qd */
    QDD = DQ + N,
    INDICATOR = QDD + N, /* of events: positive until a joint comes to rest, breaks away or meets a stop */
    MASS = INDICATOR + N,
    COM = MASS + PAYLOAD,
    INERTIA = COM + 3 * PAYLOAD,
    VISCOUS = INERTIA + 6 * PAYLOAD,
    COULOMB = VISCOUS + JOINTS,
    STATIC = COULOMB + JOINTS,
    STRIBECK = STATIC + JOINTS,
    STEP = STRIBECK + JOINTS,
    STOPPING = STEP + 1, /* whether limits are stops */
    RESTITUTION = STOPPING + STOPS,
    VARIABLES = RESTITUTION + STOPS,
    JOINT_MODE = VARIABLES, /* the first reference of the integers, one per degree of freedom */
    REFERENCES = JOINT_MODE + N
};

/* Values of JOINT_MODE besides 1 and -1, the direction in which a joint slides against dry friction. */
enum { HELD = 0, WITHOUT_DRY_FRICTION = 2 };

/* States of the FMI state machine, one bit each. */
enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8, STEPPING = 16, TERMINATED = 32 };

/* Per degree of freedom: 1 if it may move and 0 if it is held; the direction of sliding. */
typedef struct {
    double moves[N], side[N];
} Modes;

typedef struct {
    double values[VARIABLES + 1]; /* one more, so that STOPPING is there, and 0, where no joint has limits */
    double parameters[P + 1]; /* minimal parameters with the payload */
    double left[N];           /* the force that holds a joint, or drives one that moves */
    Modes modes;
    int mode;
    bool parameters_known, derivatives_known;
    bool modes_known; /* model exchange: modes stay as they are until the next event; else they follow from the state */
} State;

typedef struct {
    State state;
    bool model_exchange;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Instance;

/* The functions below are hidden, because other libraries in the same process may define the same names. */
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* Reports an error to the importer; returns fmi3Error. */
fmi3Status armdyn_refuse(fmi3Instance instance, const char *message);
/* Whether the instance is in one of these modes; reports an error if it is not. */
bool armdyn_in_mode(Instance *instance, int modes, const char *function);
/* Whether the payload is physically possible; reports an error if it is not. */
bool armdyn_possible_payload(Instance *instance);
/* Start values, and the mode in which an instance begins. */
void armdyn_start(State *state);
/* Fills in the derivatives of the states and the event indicators, if they are not known. */
void armdyn_derivatives(State *state);
/* One step of the classical Runge-Kutta method of fourth order, split where a joint comes to rest or reaches a stop;
 * the torques are constant. */
void armdyn_take_step(State *state, double h);

/* Computes the arm's parameters with the payload, if they are not known. */
void armdyn_know_parameters(State *state);
/* The breakaway friction of a degree of freedom, without load-dependent friction. */
double armdyn_breakaway(const double *values, int k);
/* Accelerations in given modes; `left` is what holds a joint, to be compared with `breakaway`, or drives one. */
void armdyn_accelerations(State *state, const double *q, const double *qd, const Modes *modes, double *qdd, double *left);
/* Whether a joint is at (or beyond) its stop: -1 at the lower one, 1 at the upper one, 0 at none. */
int armdyn_at_stop(const State *state, int k);
/* Which joints are held, and to which side the others slide: modes that agree with the forces. Pinned joints stay. */
void armdyn_settle(State *state, const bool *pinned, Modes *modes, double *qdd, double *left);
/* Applies the impacts of joints that move into their stops. */
void armdyn_impacts(State *state);
/* Brings joints to rest, by impacts without restitution where they have stops. */
void armdyn_bring_to_rest(State *state, const bool *joints);
/* Handles an event in model exchange; returns whether the continuous states changed. */
bool armdyn_update_modes(State *state);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
