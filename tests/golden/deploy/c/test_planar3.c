/*
 * Checks planar3.c against test vectors computed when it was generated.
 * Build and run: make test
 */
#include "planar3.h"

#include <math.h>
#include <stdio.h>

static int differs(const float *got, const float *expected, int size)
{
    float scale = 1.0f;
    int k;
    for (k = 0; k < size; ++k) if (fabsf(expected[k]) > scale) scale = fabsf(expected[k]);
    for (k = 0; k < size; ++k)
        if (!(fabsf(got[k] - expected[k]) <= 0.001f * scale)) return 1;
    return 0;
}

static const float armdyn_inertia_matrix_q[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f, -0.451f,
    0.034f, 0.307f, -0.483f, 0.365f, 0.697f, 1.083f,
    -0.487f, -0.212f, 0.283f,
};
static const float armdyn_inertia_matrix_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_inertia_matrix_expected_H[] = {
    0.9842598f, 0.3694163f, 0.07636355f, 0.3694163f, 0.18790613f, 0.033619728f,
    0.07636355f, 0.033619728f, 0.018f, 0.92935216f, 0.35874316f, 0.087641865f,
    0.35874316f, 0.22146751f, 0.05040042f, 0.087641865f, 0.05040042f, 0.018f,
    1.123671f, 0.455384f, 0.09418664f, 0.455384f, 0.22043027f, 0.0498818f,
    0.09418664f, 0.0498818f, 0.018f, 0.91176224f, 0.3344203f, 0.025526848f,
    0.3344203f, 0.19041166f, 0.034872495f, 0.025526848f, 0.034872495f, 0.018f,
    1.1399541f, 0.46621168f, 0.09745462f, 0.46621168f, 0.22580266f, 0.052567992f,
    0.09745462f, 0.052567992f, 0.018f,
};
static const float armdyn_gravity_load_q[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f, -0.451f,
    0.034f, 0.307f, -0.483f, 0.365f, 0.697f, 1.083f,
    -0.487f, -0.212f, 0.283f,
};
static const float armdyn_gravity_load_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_gravity_load_expected_g[] = {
    0.1755639f, -1.7562056f, 0.44389263f, 3.4457386f, -1.7376906f, -0.005477188f,
    13.886187f, 4.5720725f, 0.87401354f, 10.137488f, 1.4319224f, -0.47956157f,
    12.047389f, 3.811367f, 0.80759984f,
};
static const float armdyn_payload_parameters_mass[] = {
    1.362f, 0.804f, -1.122f, 0.981f, 1.047f,
};
static const float armdyn_payload_parameters_com[] = {
    -0.451f, 0.034f, 0.307f, -0.483f, 0.365f, 0.697f,
    1.083f, -0.487f, -0.212f, 0.283f, 1.427f, 1.284f,
    -1.325f, 0.795f, -1.027f,
};
static const float armdyn_payload_parameters_inertia[] = {
    -0.667f, 0.251f, 0.838f, -0.98f, 1.28f, -0.455f,
    1.012f, 1.191f, -0.816f, -1.009f, 1.135f, -1.061f,
    0.869f, 1.483f, -1.255f, 0.2f, -0.444f, 0.628f,
    1.14f, -0.534f, -0.516f, -0.749f, 1.053f, 0.795f,
    1.085f, 0.172f, 1.165f, -1.11f, 1.147f, -0.387f,
};
static const float armdyn_payload_parameters_parameters[] = {
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f, 0.43333334f, 0.95f, 0.0f,
    0.13866666f, 0.4f, 0.0f, 0.018f, 0.09f, 0.0f,
    0.43333334f, 0.95f, 0.0f, 0.13866666f, 0.4f, 0.0f,
    0.018f, 0.09f, 0.0f,
};
static const float armdyn_payload_parameters_expected_values[] = {
    0.77383333f, 1.631f, 0.0f, 0.35658666f, 0.9448f, 0.0f,
    0.88862944f, -0.115662f, 0.046308f, 0.6343333f, 1.352f, 0.0f,
    0.26730666f, 0.7216f, 0.0f, -0.66396195f, -0.057132f, 0.29346f,
    0.15283333f, 0.389f, 0.0f, -0.040853333f, -0.0488f, 0.0f,
    -3.6491406f, -1.461726f, 0.546414f, 0.6785833f, 1.4405f, 0.0f,
    0.29562667f, 0.7924f, 0.0f, 1.8330698f, 0.661923f, 1.399887f,
    0.6950833f, 1.4735f, 0.0f, 0.30618668f, 0.8188f, 0.0f,
    2.9447346f, -0.983175f, 0.832365f,
};

int main(void)
{
    int k, failed = 0, passed = 0;
    for (k = 0; k < 5; ++k) {
        float got_H[9];
        planar3_inertia_matrix(armdyn_inertia_matrix_q + k * 3, armdyn_inertia_matrix_parameters + k * 9, got_H);
        if (differs(got_H, armdyn_inertia_matrix_expected_H + k * 9, 9)) { ++failed; printf("inertia_matrix: vector %d differs\n", k); } else ++passed;
    }
    for (k = 0; k < 5; ++k) {
        float got_g[3];
        planar3_gravity_load(armdyn_gravity_load_q + k * 3, armdyn_gravity_load_parameters + k * 9, got_g);
        if (differs(got_g, armdyn_gravity_load_expected_g + k * 3, 3)) { ++failed; printf("gravity_load: vector %d differs\n", k); } else ++passed;
    }
    for (k = 0; k < 5; ++k) {
        float got_values[9];
        planar3_payload_parameters(armdyn_payload_parameters_mass + k * 1, armdyn_payload_parameters_com + k * 3, armdyn_payload_parameters_inertia + k * 6, armdyn_payload_parameters_parameters + k * 9, got_values);
        if (differs(got_values, armdyn_payload_parameters_expected_values + k * 9, 9)) { ++failed; printf("payload_parameters: vector %d differs\n", k); } else ++passed;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
