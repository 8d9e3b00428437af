/*
 * planar3: dynamics in straight-line C99, written by armdyn 0.2.0.
 * Arm: Saha, IJRR 1999, section 6 (structure); the numbers are made up: uniform rods
 * SI units. The arrays of a call must not overlap. No memory allocation, no dependency except libm.
 */
#include "planar3.h"

#include <math.h>

const double planar3_parameters[9] = {
    0.43333333333333335, /* U33_1 */
    0.95, /* kx_1 */
    0.0, /* ky_1 */
    0.13866666666666666, /* U33_2 */
    0.4, /* kx_2 */
    0.0, /* ky_2 */
    0.018, /* U33_3 */
    0.09, /* kx_3 */
    0.0, /* ky_3 */
};

void planar3_inertia_matrix(const double *q, const double *parameters, double *H)
{
    const double t0 = cos(q[1]);
    const double t1 = sin(q[1]);
    const double t2 = cos(q[2]);
    const double t3 = sin(q[2]);
    const double t4 = parameters[7] * t2 - parameters[8] * t3;
    const double t5 = parameters[7] * t3 + parameters[8] * t2;
    const double t6 = parameters[3] + (parameters[6] + t4 * 0.8);
    const double t7 = t0 * (parameters[4] + t4) - t1 * (parameters[5] + t5);
    const double t8 = t6 + t7 * 0.5;
    const double t9 = parameters[6] + t4 * 0.4;
    const double t10 = t9 - 0.5 * (t1 * t5 - t0 * t4);
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

void planar3_gravity_load(const double *q, const double *parameters, double *g)
{
    const double t0 = cos(q[0]);
    const double t1 = sin(q[0]);
    const double t2 = cos(q[1]);
    const double t3 = sin(q[1]);
    const double t4 = cos(q[2]);
    const double t5 = sin(q[2]);
    const double t6 = t1 * 9.81;
    const double t7 = t0 * 9.81;
    const double t8 = t2 * t6 + t3 * t7;
    const double t9 = t2 * t7 - t3 * t6;
    const double t10 = parameters[7] * (t4 * t9 - t5 * t8) - parameters[8] * (t4 * t8 + t5 * t9);
    const double t11 = parameters[4] * t9 - parameters[5] * t8 + t10;
    g[0] = parameters[1] * t7 - parameters[2] * t6 + t11;
    g[1] = t11;
    g[2] = t10;
}
