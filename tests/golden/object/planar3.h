/*
 * planar3: dynamics in straight-line machine code, written by armdyn 0.2.0.
 * Arm: Saha, IJRR 1999, section 6 (structure); the numbers are made up: uniform rods
 * SI units. The arrays of a call must not overlap. No memory allocation, no library, no external symbols.
 * This header is for the objects in this folder, which compute in double; see ABI.md.
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

/* A body that the tool holds, for payload_parameters and the controllers; point masses have no inertia. */
typedef struct {
    double mass; /* kg */
    double com[3]; /* centre of mass in the tool frame, m */
    double inertia[6]; /* about com, in the tool's axes: xx, yy, zz, xy, xz, yz, kg m² */
} planar3_payload;

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
 * Coriolis, centrifugal and gravity forces, by newton_euler: inverse dynamics without acceleration
 * Source: luh_1980
 * 33 multiplications, 20 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  qd[3], rad/s
 *   in  parameters[9], SI
 *   out b[3], N m
 */
void planar3_bias(const double *q, const double *qd, const double *parameters, double *b);

/*
 * gravity load, by recursive: forces carried inwards
 * Source: armdyn
 * 16 multiplications, 9 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  parameters[9], SI
 *   out g[3], N m
 */
void planar3_gravity_load(const double *q, const double *parameters, double *g);

/*
 * joint forces for a motion, with friction, by newton_euler_mlc: recursive, with minimal combinations
 * Source: lin_1995
 * 42 multiplications, 31 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  qd[3], rad/s
 *   in  qdd[3], rad/s²
 *   in  parameters[9], SI
 *   out tau[3], N m
 */
void planar3_inverse_dynamics(const double *q, const double *qd, const double *qdd, const double *parameters, double *tau);

/*
 * joint accelerations under joint forces, with friction, by composite: H, b, then U D Uᵀ
 * Source: walker_orin_1982
 * 61 multiplications, 46 additions, 3 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   in  qd[3], rad/s
 *   in  tau[3], N m
 *   in  parameters[9], SI
 *   out qdd[3], rad/s²
 */
void planar3_forward_dynamics(const double *q, const double *qd, const double *tau, const double *parameters, double *qdd);

/*
 * pose of the tool in the base frame, by definition: product of placements
 * Source: armdyn
 * 14 multiplications, 8 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   out T[4][4], row-major, rotation, and m
 */
void planar3_pose(const double *q, double *T);

/*
 * tool Jacobian, by definition: axes and levers
 * Source: armdyn
 * 14 multiplications, 8 additions, 0 divisions, 6 sines and cosines.
 *   in  q[3], rad
 *   out J[6][3], row-major, SI
 */
void planar3_jacobian(const double *q, double *J);

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
void planar3_payload_parameters(const double *mass, const double *com, const double *inertia, const double *parameters, double *values);

#ifdef __cplusplus
}
#endif

#endif /* PLANAR3_H */
