/*
 * planar3: dynamics in straight-line C99, written by armdyn 0.2.0.
 * Arm: Saha, IJRR 1999, section 6 (structure); the numbers are made up: uniform rods
 * SI units. The arrays of a call must not overlap. No memory allocation, no dependency except libm.
 */
#ifndef PLANAR3_H
#define PLANAR3_H

#define PLANAR3_N 3
#define PLANAR3_P 9

#ifdef __cplusplus
extern "C" {
#endif

/* The arm's minimal parameters, from its file: pass these, or your own, as `parameters`. */
extern const double planar3_parameters[9];

/*
 * joint-space inertia matrix, by lin_fang_1: wrenches carried inwards, frame by frame
 * Source: lin_fang_1999
 * 12 multiplications, 13 additions, 0 divisions, 4 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out H[3][3], row-major, SI
 */
void planar3_inertia_matrix(const double *q, const double *parameters, double *H);

/*
 * gravity load, by recursive: forces carried inwards
 * Source: armdyn
 * 16 multiplications, 9 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out g[3], N m
 */
void planar3_gravity_load(const double *q, const double *parameters, double *g);

#ifdef __cplusplus
}
#endif

#endif /* PLANAR3_H */
