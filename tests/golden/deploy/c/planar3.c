/*
 * planar3: dynamics in straight-line C99, written by armdyn 0.2.0.
 * Arm: Saha, IJRR 1999, section 6 (structure); the numbers are made up: uniform rods
 * SI units. The arrays of a call must not overlap. No memory allocation, no dependency except libm.
 */
#include "planar3.h"

#include <math.h>

const float planar3_parameters[9] = {
    0.43333334f, /* U33_1 */
    0.95f, /* kx_1 */
    0.0f, /* ky_1 */
    0.13866666f, /* U33_2 */
    0.4f, /* kx_2 */
    0.0f, /* ky_2 */
    0.018f, /* U33_3 */
    0.09f, /* kx_3 */
    0.0f, /* ky_3 */
};

void planar3_inertia_matrix(const float *q, const float *parameters, float *H)
{
    const float t0 = cosf(q[1]);
    const float t1 = sinf(q[1]);
    const float t2 = cosf(q[2]);
    const float t3 = sinf(q[2]);
    const float t4 = parameters[7] * t2 - parameters[8] * t3;
    const float t5 = parameters[7] * t3 + parameters[8] * t2;
    const float t6 = parameters[3] + (parameters[6] + t4 * 0.8f);
    const float t7 = t0 * (parameters[4] + t4) - t1 * (parameters[5] + t5);
    const float t8 = t6 + t7 * 0.5f;
    const float t9 = parameters[6] + t4 * 0.4f;
    const float t10 = t9 - 0.5f * (t1 * t5 - t0 * t4);
    H[0] = parameters[0] + (t6 + t7);
    H[1] = t8;
    H[2] = t10;
    H[3] = t8;
    H[4] = t6;
    H[5] = t9;
    H[6] = t10;
    H[7] = t9;
    H[8] = parameters[6];
}

void planar3_gravity_load(const float *q, const float *parameters, float *g)
{
    const float t0 = cosf(q[0]);
    const float t1 = sinf(q[0]);
    const float t2 = cosf(q[1]);
    const float t3 = sinf(q[1]);
    const float t4 = cosf(q[2]);
    const float t5 = sinf(q[2]);
    const float t6 = t1 * 9.81f;
    const float t7 = t0 * 9.81f;
    const float t8 = t2 * t6 + t3 * t7;
    const float t9 = t2 * t7 - t3 * t6;
    const float t10 = parameters[7] * (t4 * t9 - t5 * t8) - parameters[8] * (t4 * t8 + t5 * t9);
    const float t11 = parameters[4] * t9 - parameters[5] * t8 + t10;
    g[0] = parameters[1] * t7 - parameters[2] * t6 + t11;
    g[1] = t11;
    g[2] = t10;
}

void planar3_payload_parameters(const float *mass, const float *com, const float *inertia, const float *parameters, float *values)
{
    const float t0 = inertia[2] + parameters[6] + mass[0] * (com[1] * com[1] + com[0] * (com[0] + 0.6f) + 0.09f);
    values[0] = parameters[0] + mass[0] * 0.25f;
    values[1] = parameters[1] + mass[0] * 0.5f;
    values[2] = parameters[2];
    values[3] = parameters[3] + mass[0] * 0.16f;
    values[4] = parameters[4] + mass[0] * 0.4f;
    values[5] = parameters[5];
    values[6] = t0;
    values[7] = parameters[7] + mass[0] * (com[0] + 0.3f);
    values[8] = parameters[8] + mass[0] * com[1];
}
