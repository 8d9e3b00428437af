/*
 * FMI 3.0 model exchange and co-simulation of an arm: torques in, positions, velocities and accelerations out.
 *
 * model.h says how many joints there are, what the variables start from, and gives the dynamics. Variables stand in one
 * array, in the order of the enumeration below, which is also the order of their value references.
 */
#ifndef FMU_H
#define FMU_H

#include <stdbool.h>

#include "fmi3Functions.h"
#include "model.h"

enum {
    TIME = 0,
    TAU = 1,
    Q = TAU + N,
    QD = Q + N,
    DQ = QD + N, /* the derivatives of q, which are qd */
    QDD = DQ + N,
    MASS = QDD + N,
    COM = MASS + PAYLOAD,
    INERTIA = COM + 3 * PAYLOAD,
    VISCOUS = INERTIA + 6 * PAYLOAD,
    COULOMB = VISCOUS + JOINTS,
    STATIC = COULOMB + JOINTS,
    STRIBECK = STATIC + JOINTS,
    SMOOTH = STRIBECK + JOINTS, /* the speed over which dry friction changes its sign */
    STEP = SMOOTH + (JOINTS > 0),
    VARIABLES = STEP + 1
};

/* Modes of FMI's state machine, one bit each. */
enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8, STEPPING = 16, TERMINATED = 32 };

typedef struct {
    double values[VARIABLES];
    double parameters[P + 1]; /* minimal parameters with the payload */
    int mode;
    bool parameters_known, derivatives_known;
} State;

typedef struct {
    State state;
    bool model_exchange;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Instance;

/* Reports an error to the importer; returns fmi3Error. */
fmi3Status refuse(fmi3Instance instance, const char *message);
/* Whether the instance is in one of these modes; reports an error if it is not. */
bool in_mode(Instance *instance, int modes, const char *function);
/* Whether there can be a body like the payload; reports an error if there cannot. */
bool possible_payload(Instance *instance);
/* Start values, and the mode in which an instance begins. */
void start(State *state);
/* Fills in the derivatives of the states, if they are not known. */
void derivatives(State *state);
/* One step of the classical Runge-Kutta method of fourth order; the torques stay as they are. */
void runge_kutta_4(State *state, double h);

#endif
