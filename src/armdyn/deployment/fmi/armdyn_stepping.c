/* Model exchange, co-simulation, and the whole state to save and restore. */
#include "armdyn_fmu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, EVENT, "fmi3EnterContinuousTimeMode") || !armdyn_possible_payload(one)) return fmi3Error;
    if (!one->state.modes_known) armdyn_update_modes(&one->state);
    one->state.mode = CONTINUOUS;
    return fmi3OK;
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean no_set_state, fmi3Boolean *event,
                                       fmi3Boolean *terminate)
{
    (void)no_set_state;
    if (!armdyn_in_mode((Instance *)instance, CONTINUOUS, "fmi3CompletedIntegratorStep")) return fmi3Error;
    *event = *terminate = fmi3False;
    return fmi3OK;
}

fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64 time)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, EVENT | CONTINUOUS, "fmi3SetTime")) return fmi3Error;
    one->state.values[TIME] = time;
    return fmi3OK;
}

fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64 states[], size_t n)
{
    Instance *one = (Instance *)instance;
    if (!armdyn_in_mode(one, CONTINUOUS, "fmi3SetContinuousStates") || n != 2 * N) return fmi3Error;
    memcpy(one->state.values + Q, states, 2 * N * sizeof(double));
    one->state.derivatives_known = false;
    return fmi3OK;
}

fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64 states[], size_t n)
{
    Instance *one = (Instance *)instance;
    if (one == NULL || n != 2 * N) return armdyn_refuse(one, "the model has two states per joint");
    memcpy(states, one->state.values + Q, 2 * N * sizeof(double));
    return fmi3OK;
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64 values[], size_t n)
{
    Instance *one = (Instance *)instance;
    int i;
    if (one == NULL || n != 2 * N) return armdyn_refuse(one, "the model has two states per joint");
    armdyn_derivatives(&one->state);
    memcpy(values, one->state.values + DQ, 2 * N * sizeof(double));
    for (i = 0; i < 2 * N; ++i)
        if (!isfinite(values[i])) return fmi3Discard; /* the integrator tried a state where there is none */
    return fmi3OK;
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64 nominals[], size_t n)
{
    size_t i;
    if (instance == NULL || n != 2 * N) return armdyn_refuse(instance, "the model has two states per joint");
    for (i = 0; i < n; ++i) nominals[i] = 1.0;
    return fmi3OK;
}

fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64 indicators[], size_t n)
{
    Instance *one = (Instance *)instance;
    if (one == NULL || n != N) return armdyn_refuse(one, "the model has one event indicator per joint");
    armdyn_derivatives(&one->state);
    memcpy(indicators, one->state.values + INDICATOR, N * sizeof(double));
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *n)
{
    (void)instance;
    *n = N;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *n)
{
    (void)instance;
    *n = 2 * N;
    return fmi3OK;
}

static bool finite_state(const State *state)
{
    int i;
    for (i = 0; i < 2 * N; ++i)
        if (!isfinite(state->values[Q + i])) return false;
    return true;
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 now, fmi3Float64 size, fmi3Boolean no_set_state,
                      fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last)
{
    Instance *one = (Instance *)instance;
    double count, k;
    (void)no_set_state;
    if (!armdyn_in_mode(one, STEPPING, "fmi3DoStep")) return fmi3Error;
    *event = *terminate = *early = fmi3False;
    *last = one->state.values[TIME];
    if (!(fabs(now - one->state.values[TIME]) <= 1e-9 * (1.0 + fabs(now))))
        return armdyn_refuse(one, "a step must begin where the previous one ended");
    if (!(size > 0.0) || !isfinite(size)) return armdyn_refuse(one, "the communication step must be positive");
    if (!armdyn_possible_payload(one)) return fmi3Error;
    /* As few equal steps as keep each within solver.step; the last bits of the quotient are not worth a step. */
    count = ceil(size / one->state.values[STEP] * (1.0 - 1e-12));
    if (count < 1.0) count = 1.0;
    if (count > 1e9) return armdyn_refuse(one, "solver.step is too short for this communication step");
    for (k = 0.0; k < count; k += 1.0) {
        armdyn_take_step(&one->state, size / count);
        if (!finite_state(&one->state)) return armdyn_refuse(one, "the integration diverged; reduce solver.step");
        *last = one->state.values[TIME] = now + size * ((k + 1.0) / count);
    }
    *last = one->state.values[TIME] = now + size;
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    Instance *one = (Instance *)instance;
    if (one == NULL || state == NULL) return fmi3Error;
    if (*state == NULL) *state = malloc(sizeof(State));
    if (*state == NULL) return armdyn_refuse(one, "out of memory");
    memcpy(*state, &one->state, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    if (instance == NULL || state == NULL) return fmi3Error;
    memcpy(&((Instance *)instance)->state, state, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    (void)instance, (void)state;
    *size = sizeof TOKEN + sizeof(State);
    return fmi3OK;
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
    if (state == NULL || size != sizeof TOKEN + sizeof(State))
        return armdyn_refuse(instance, "wrong size of a serialized state");
    memcpy(bytes, TOKEN, sizeof TOKEN);
    memcpy(bytes + sizeof TOKEN, state, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
    if (size != sizeof TOKEN + sizeof(State) || memcmp(bytes, TOKEN, sizeof TOKEN) != 0)
        return armdyn_refuse(instance, "the serialized state is not of this model");
    if (*state == NULL) *state = malloc(sizeof(State));
    if (*state == NULL) return armdyn_refuse(instance, "out of memory");
    memcpy(*state, bytes + sizeof TOKEN, sizeof(State));
    return fmi3OK;
}
