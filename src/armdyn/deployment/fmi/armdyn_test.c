/*
 * Compares the model with test vectors that armdyn computed independently: accelerations in model exchange, the final
 * state of a motion in co-simulation, and the exact repetition of a motion from a saved state.
 * Build and run: make test
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "armdyn_fmu.h"
#include "armdyn_vectors.h"

static int failed = 0, passed = 0;

static void check(int good, const char *what)
{
    if (good) {
        ++passed;
    } else {
        ++failed;
        printf("%s: not as expected\n", what);
    }
}

static int close_to(const double *got, const double *expected, int n, double tolerance)
{
    double scale = 1.0;
    int k;
    for (k = 0; k < n; ++k) scale = fmax(scale, fabs(expected[k]));
    for (k = 0; k < n; ++k)
        if (!(fabs(got[k] - expected[k]) <= tolerance * scale)) return 0;
    return 1;
}

static void print_message(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category,
                          fmi3String message)
{
    (void)environment, (void)category;
    printf("status %d: %s\n", (int)status, message);
}

static int messages = 0;

static void count_message(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category,
                          fmi3String message)
{
    (void)environment, (void)status, (void)category, (void)message;
    ++messages;
}

/* The variables from `first` on, as many as there are values. */
static int set(fmi3Instance instance, unsigned first, const double *values, unsigned n)
{
    fmi3ValueReference references[REFERENCES];
    unsigned k;
    for (k = 0; k < n; ++k) references[k] = first + k;
    return fmi3SetFloat64(instance, references, n, values, n) == fmi3OK;
}

static int get(fmi3Instance instance, unsigned first, double *values, unsigned n)
{
    fmi3ValueReference references[REFERENCES];
    unsigned k;
    for (k = 0; k < n; ++k) references[k] = first + k;
    return fmi3GetFloat64(instance, references, n, values, n) == fmi3OK;
}

/* From its start to continuous time. */
static void begin(fmi3Instance one, const double *tau, const double *states)
{
    fmi3Boolean flags[5];
    double next;
    check(set(one, MASS, VECTOR_SETTINGS, SETTINGS), "parameters");
    check(set(one, TAU, tau, N) && set(one, Q, states, 2 * N), "torques and states");
    check(fmi3EnterInitializationMode(one, fmi3False, 0.0, 0.0, fmi3False, 0.0) == fmi3OK, "initialization");
    check(fmi3ExitInitializationMode(one) == fmi3OK, "end of initialization");
    check(fmi3UpdateDiscreteStates(one, flags, flags + 1, flags + 2, flags + 3, flags + 4, &next) == fmi3OK, "events");
    check(fmi3EnterContinuousTimeMode(one) == fmi3OK, "continuous time");
}

static void model_exchange(void)
{
    double got[2 * N];
    size_t states = 0, indicators = 0;
    int k, i;
    fmi3Instance one = fmi3InstantiateModelExchange("one", TOKEN, "", fmi3False, fmi3False, NULL, print_message);
    check(one != NULL, "instance for model exchange");
    if (one == NULL) return;
    check(fmi3GetNumberOfContinuousStates(one, &states) == fmi3OK && states == 2 * N, "number of states");
    check(fmi3GetNumberOfEventIndicators(one, &indicators) == fmi3OK && indicators == N, "number of indicators");
    for (k = 0; k < VECTORS; ++k) {
        begin(one, VECTOR_TAU + k * N, VECTOR_STATES + 2 * k * N);
        check(fmi3GetContinuousStateDerivatives(one, got, 2 * N) == fmi3OK, "derivatives");
        check(close_to(got, VECTOR_STATES + 2 * k * N + N, N, 0.0), "derivatives of q");
        check(close_to(got + N, VECTOR_QDD + k * N, N, 1e-9), "accelerations");
        check(get(one, QDD, got, N) && close_to(got, VECTOR_QDD + k * N, N, 1e-9), "accelerations as outputs");
        check(fmi3GetEventIndicators(one, got, N) == fmi3OK, "event indicators");
        for (i = 0; i < N; ++i) check(got[i] > 0.0, "no event at once");
        check(fmi3Reset(one) == fmi3OK, "reset");
    }
    fmi3FreeInstance(one);
}

static int steps(fmi3Instance one, int from, int to)
{
    fmi3Boolean flags[3];
    double last;
    int k;
    for (k = from; k < to; ++k)
        if (fmi3DoStep(one, k * MOTION_STEP, MOTION_STEP, fmi3False, flags, flags + 1, flags + 2, &last) != fmi3OK)
            return 0;
    return fabs(last - to * MOTION_STEP) < 1e-12;
}

static void co_simulation(void)
{
    fmi3FMUState saved = NULL, read = NULL;
    fmi3Byte bytes[65536];
    double got[2 * N], again[2 * N];
    size_t size = 0;
    fmi3Instance one = fmi3InstantiateCoSimulation("one", TOKEN, "", fmi3False, fmi3False, fmi3False, fmi3False, NULL, 0,
                                                   NULL, print_message, NULL);
    check(one != NULL, "instance for co-simulation");
    if (one == NULL) return;
    check(set(one, MASS, VECTOR_SETTINGS, SETTINGS), "parameters");
    check(set(one, Q, VECTOR_STATES, 2 * N), "initial state");
    check(fmi3EnterInitializationMode(one, fmi3False, 0.0, 0.0, fmi3False, 0.0) == fmi3OK, "initialization");
    check(fmi3ExitInitializationMode(one) == fmi3OK, "end of initialization");
    check(set(one, TAU, VECTOR_TAU, N), "torques");
    check(steps(one, 0, MOTION_STEPS / 2), "half of the motion");
    check(fmi3GetFMUState(one, &saved) == fmi3OK, "state to keep");
    check(fmi3SerializedFMUStateSize(one, saved, &size) == fmi3OK && size <= sizeof bytes, "its size");
    check(fmi3SerializeFMUState(one, saved, bytes, size) == fmi3OK, "state as bytes");
    check(fmi3DeserializeFMUState(one, bytes, size, &read) == fmi3OK, "state from bytes");
    check(steps(one, MOTION_STEPS / 2, MOTION_STEPS), "the other half");
    check(get(one, Q, got, 2 * N) && close_to(got, MOTION_END, 2 * N, 1e-8), "the end of the motion");
    check(fmi3SetFMUState(one, read) == fmi3OK, "state again");
    check(steps(one, MOTION_STEPS / 2, MOTION_STEPS), "the other half again");
    check(get(one, Q, again, 2 * N) && memcmp(got, again, sizeof got) == 0, "the same end, to the bit");
    fmi3FreeFMUState(one, &saved);
    fmi3FreeFMUState(one, &read);
    fmi3Terminate(one);
    fmi3FreeInstance(one);
}

/* An inertia without mass, two that no body has, and a rod, which is at the edge of what is possible. */
static void impossible_payloads(fmi3Instance one)
{
    const double weightless[10] = {0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0};
    const double long_axis[10] = {1.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.3, 0.0, 0.0, 0.0};
    const double oblique[10] = {1.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.0, 0.2, 0.0};
    const double rod[10] = {1.0, 0.0, 0.0, 0.0, 0.3, 0.15, 0.15, 0.0, 0.0, 0.15};
    const double less_than_nothing = -1.0;
    const double *const bodies[3] = {weightless, long_axis, oblique};
    fmi3Boolean flags[3];
    double last;
    int k;
    check(fmi3EnterInitializationMode(one, fmi3False, 0.0, 0.0, fmi3False, 0.0) == fmi3OK, "initialization");
    check(!set(one, MASS, &less_than_nothing, 1), "a negative mass");
    for (k = 0, messages = 0; k < 3; ++k) {
        check(set(one, MASS, bodies[k], 10), "a body, number by number");
        check(fmi3ExitInitializationMode(one) == fmi3Error, "an impossible payload");
    }
    check(messages == 3, "a message for each payload");
    check(set(one, MASS, rod, 10) && fmi3ExitInitializationMode(one) == fmi3OK, "a rod");
    check(set(one, MASS, long_axis, 10), "another body while the motion goes on");
    check(fmi3DoStep(one, 0.0, 1e-3, fmi3False, flags, flags + 1, flags + 2, &last) == fmi3Error, "which is impossible");
}

static void refusals(void)
{
    const double zero[N + 1] = {0.0};
    fmi3Instance one;
    check(fmi3InstantiateModelExchange("x", "other", "", fmi3False, fmi3False, NULL, count_message) == NULL, "token");
    one = fmi3InstantiateCoSimulation("x", TOKEN, "", fmi3False, fmi3False, fmi3False, fmi3False, NULL, 0, NULL,
                                      count_message, NULL);
    check(one != NULL && !set(one, QDD, zero, N), "an output cannot be set");
    check(!set(one, STEP, zero, 1), "a step of zero");
    check(!set(one, VARIABLES, zero, 1), "no such variable");
    check(fmi3ExitInitializationMode(one) == fmi3Error, "wrong mode");
    check(messages == 5, "a message for each");
    if (one != NULL && PAYLOAD) impossible_payloads(one);
    fmi3FreeInstance(one);
}

int main(void)
{
    model_exchange();
    co_simulation();
    refusals();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
