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
extern const float planar3_parameters[9];

/* A body that the tool holds, for payload_parameters and the controllers; point masses have no inertia. */
typedef struct {
    float mass; /* kg */
    float com[3]; /* centre of mass in the tool frame, m */
    float inertia[6]; /* about com, in the tool's axes: xx, yy, zz, xy, xz, yz, kg m² */
} planar3_payload;

/*
 * joint-space inertia matrix, by lin_fang_1: wrenches carried inwards, frame by frame
 * Source: lin_fang_1999
 * 12 multiplications, 13 additions, 0 divisions, 4 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out H[3][3], row-major, SI
 */
void planar3_inertia_matrix(const float *q, const float *parameters, float *H);

/*
 * gravity load, by recursive: forces carried inwards
 * Source: armdyn
 * 16 multiplications, 9 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out g[3], N m
 */
void planar3_gravity_load(const float *q, const float *parameters, float *g);

/*
 * minimal parameters with a payload at the tool, by superposition: the payload's parameters added to the arm's
 * The payload is not checked. It must be physically possible (non-negative mass, an inertia that a rigid body can
 * have, no NaN), or the negative of such a payload, which removes it. arm.payload_parameters in Python checks it.
 * Source: armdyn
 * 9 multiplications, 12 additions, 0 divisions, 0 sines and cosines.
 *   in  mass (one number), kg
 *   in  com[3], m, in the tool's axes
 *   in  inertia[6], kg m²: xx, yy, zz, xy, xz, yz about com
 *   in  parameters[9], SI
 *   out values[9], SI
 */
void planar3_payload_parameters(const float *mass, const float *com, const float *inertia, const float *parameters, float *values);

#ifdef __cplusplus
}
#endif

#endif /* PLANAR3_H */
