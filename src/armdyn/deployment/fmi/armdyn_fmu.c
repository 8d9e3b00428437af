/* Instances of the model, their modes and their variables. */
#include "armdyn_fmu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fmi3Status armdyn_refuse(fmi3Instance given, const char *message)
{
    const Instance *instance = (const Instance *)given;
    if (instance != NULL && instance->log != NULL)
        instance->log(instance->environment, fmi3Error, "logStatusError", message);
    return fmi3Error;
}

bool armdyn_in_mode(Instance *instance, int modes, const char *function)
{
    char message[160];
    if (instance != NULL && (instance->state.mode & modes) != 0) return true;
    snprintf(message, sizeof message, "%s may not be called in this mode", function);
    armdyn_refuse(instance, message);
    return false;
}

/* A body's second moments about its centre, the trace of the inertia halved less the inertia, are positive semidefinite:
 * no principal minor is negative. Less than `slack` is rounding. */
bool armdyn_possible_payload(Instance *instance)
{
    const double *J = instance->state.values + INERTIA; /* xx, yy, zz, xy, xz, yz */
    const double trace = PAYLOAD ? J[0] + J[1] + J[2] : 0.0, half = trace / 2.0, slack = 1e-9 * fabs(trace);
    double a, b, c, x, y, z, det;
    if (!PAYLOAD) return true;
    a = half - J[0], b = half - J[1], c = half - J[2], x = J[3], y = J[4], z = J[5];
    det = a * (b * c - z * z) - x * (x * c + z * y) - y * (x * z + b * y);
    if (instance->state.values[MASS] == 0.0 && (a != 0.0 || b != 0.0 || c != 0.0 || x != 0.0 || y != 0.0 || z != 0.0)) {
        armdyn_refuse(instance, "this payload is not possible: an inertia without mass");
        return false;
    }
    if (a >= -slack && b >= -slack && c >= -slack && a * b - x * x >= -slack * half && a * c - y * y >= -slack * half
        && b * c - z * z >= -slack * half && det >= -slack * half * half)
        return true;
    armdyn_refuse(instance, "this payload is not possible: no body has this inertia about its centre of mass");
    return false;
}

/* Whether no joint begins beyond a stop; reports an error if one does. */
static bool within_stops(Instance *instance)
{
    char message[160];
    int k;
    for (k = 0; instance->state.values[STOPPING] != 0.0 && k < N; ++k) {
        const double q = instance->state.values[Q + k];
        if (q >= LOWER[k] && q <= UPPER[k]) continue;
        snprintf(message, sizeof message,
                 "joint %d starts at %g, outside its limits %g to %g; stops.active = 0 ignores them", k + 1, q, LOWER[k],
                 UPPER[k]);
        armdyn_refuse(instance, message);
        return false;
    }
    return true;
}

static Instance *instantiate(fmi3String token, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    Instance *instance = (Instance *)calloc(1, sizeof(Instance));
    if (instance == NULL) return NULL;
    instance->environment = environment;
    instance->log = log;
    if (token == NULL || strcmp(token, TOKEN) != 0) {
        armdyn_refuse(instance, "the instantiation token does not match modelDescription.xml");
        free(instance);
        return NULL;
    }
    armdyn_start(&instance->state);
    return instance;
}

const char *fmi3GetVersion(void) { return "3.0"; }

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    size_t k;
    (void)on; /* errors are always reported, and there is nothing else to report */
    for (k = 0; k < n; ++k)
        if (strcmp(categories[k], "logStatusError") != 0)
            return armdyn_refuse(instance, "unknown log category; available: logStatusError");
    return fmi3OK;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback log)
{
    Instance *instance = instantiate(token, environment, log);
    (void)name, (void)resources, (void)visible, (void)logging;
    if (instance != NULL) instance->model_exchange = true;
    return instance;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early_return,
                                         const fmi3ValueReference intermediate[], size_t n_intermediate,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback update)
{
    Instance *instance = instantiate(token, environment, log);
    (void)name, (void)resources, (void)visible, (void)logging, (void)early_return;
    (void)intermediate, (void)n_intermediate, (void)update;
    if (instance != NULL && events) {
        armdyn_refuse(instance, "this model has no event mode in co-simulation");
        free(instance);
        return NULL;
    }
    return instance;
}

void fmi3FreeInstance(fmi3Instance instance) { free(instance); }

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean tolerance_defined, fmi3Float64 tolerance,
                                       fmi3Float64 start_time, fmi3Boolean stop_time_defined, fmi3Float64 stop_time)
{
    Instance *one = (Instance *)instance;
    (void)tolerance_defined, (void)tolerance, (void)stop_time_defined, (void)stop_time;
    if (!armdyn_in_mode(one, INSTANTIATED, "fmi3EnterInitializationMode")) return fmi3Error;
    one->state.values[TIME] = start_time;
    one->state.mode = INITIALIZATION;
    return fmi3OK;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, INITIALIZATION, "fmi3ExitInitializationMode")) return fmi3Error;
    if (!armdyn_possible_payload(one) || !within_stops(one)) return fmi3Error;
    one->state.mode = one->model_exchange ? EVENT : STEPPING;
    return fmi3OK;
}

fmi3Status fmi3EnterEventMode(fmi3Instance instance)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, CONTINUOUS, "fmi3EnterEventMode")) return fmi3Error;
    one->state.mode = EVENT;
    return fmi3OK;
}

fmi3Status fmi3Terminate(fmi3Instance instance)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, EVENT | CONTINUOUS | STEPPING, "fmi3Terminate")) return fmi3Error;
    one->state.mode = TERMINATED;
    return fmi3OK;
}

fmi3Status fmi3Reset(fmi3Instance instance)
{
    if (instance == NULL) return fmi3Error;
    armdyn_start(&((Instance *)instance)->state);
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate,
                                    fmi3Boolean *nominals, fmi3Boolean *states, fmi3Boolean *next, fmi3Float64 *time)
{
    if (!armdyn_in_mode((Instance *)instance, EVENT, "fmi3UpdateDiscreteStates")) return fmi3Error;
    *again = *terminate = *nominals = *next = fmi3False;
    *states = armdyn_update_modes(&((Instance *)instance)->state);
    *time = 0.0;
    return fmi3OK;
}

fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance)
{
    return armdyn_in_mode((Instance *)instance, INITIALIZATION | EVENT, "fmi3EvaluateDiscreteStates") ? fmi3OK : fmi3Error;
}

/* Whether a variable is one of a kind: from `first` on, before `end`. */
static bool is_of(fmi3ValueReference reference, fmi3ValueReference first, fmi3ValueReference end)
{
    return reference >= first && reference < end;
}

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Float64 values[],
                          size_t n_values)
{
    Instance *one = (Instance *)instance;
    size_t k;
    if (one == NULL || n != n_values) return armdyn_refuse(one, "every variable has one value");
    for (k = 0; k < n; ++k) {
        if (references[k] >= VARIABLES) return armdyn_refuse(one, "no variable has this value reference");
        if (is_of(references[k], DQ, MASS)) armdyn_derivatives(&one->state);
        values[k] = one->state.values[references[k]];
    }
    return fmi3OK;
}

fmi3Status fmi3GetInt32(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Int32 values[],
                        size_t n_values)
{
    Instance *one = (Instance *)instance;
    size_t k;
    if (one == NULL || n != n_values) return armdyn_refuse(one, "every variable has one value");
    for (k = 0; k < n; ++k) {
        const int joint = (int)references[k] - JOINT_MODE;
        if (joint < 0 || joint >= N) return armdyn_refuse(one, "no variable of type Int32 has this value reference");
        armdyn_derivatives(&one->state);
        values[k] = one->state.modes.side[joint] < 0.0 ? -1 : 1;
        if (armdyn_breakaway(one->state.values, joint) == 0.0) values[k] = WITHOUT_DRY_FRICTION;
        if (one->state.modes.moves[joint] == 0.0) values[k] = HELD;
    }
    return fmi3OK;
}

fmi3Status fmi3SetInt32(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                        const fmi3Int32 values[], size_t n_values)
{
    (void)references, (void)values, (void)n_values;
    return n == 0 ? fmi3OK : armdyn_refuse(instance, "the modes of the joints are outputs and cannot be set");
}

/* The modes in which a variable may be set. */
static int settable(const Instance *instance, fmi3ValueReference reference)
{
    const int before = INSTANTIATED | INITIALIZATION;
    if (is_of(reference, TAU, Q)) return before | EVENT | CONTINUOUS | STEPPING;
    if (is_of(reference, Q, DQ)) return instance->model_exchange ? before | CONTINUOUS : before;
    if (is_of(reference, MASS, VARIABLES)) return before | EVENT | STEPPING;
    return 0;
}

static bool possible(fmi3ValueReference reference, double value)
{
    if (!isfinite(value)) return false;
    if (reference == STEP) return value > 0.0;
    if (STOPS && reference == STOPPING) return value == 0.0 || value == 1.0;
    if (STOPS && reference == RESTITUTION) return value >= 0.0 && value <= 1.0;
    if (PAYLOAD && reference == MASS) return value >= 0.0;
    if (is_of(reference, VISCOUS, STEP)) return value >= 0.0;
    return true;
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                          const fmi3Float64 values[], size_t n_values)
{
    Instance *one = (Instance *)instance;
    size_t k;
    if (one == NULL || n != n_values) return armdyn_refuse(one, "every variable has one value");
    for (k = 0; k < n; ++k) {
        if (references[k] >= VARIABLES) return armdyn_refuse(one, "no variable has this value reference");
        if ((settable(one, references[k]) & one->state.mode) == 0)
            return armdyn_refuse(one, "this variable cannot be set, or not in this mode");
        if (!possible(references[k], values[k]))
            return armdyn_refuse(one, "a value must be finite; mass and friction not negative; solver.step positive; "
                               "stops.active 0 or 1; stops.restitution from 0 to 1");
    }
    for (k = 0; k < n; ++k) {
        one->state.values[references[k]] = values[k];
        if (is_of(references[k], MASS, VISCOUS)) one->state.parameters_known = false;
    }
    if (n > 0) one->state.derivatives_known = false;
    return fmi3OK;
}
