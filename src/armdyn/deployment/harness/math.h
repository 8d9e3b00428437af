/* The part of <math.h> that the test program uses; the compiler has both as instructions. */
#ifndef HARNESS_MATH_H
#define HARNESS_MATH_H

#define fabs(x) __builtin_fabs(x)
#define fabsf(x) __builtin_fabsf(x)

#endif
