/* The part of <stdio.h> that the test program uses, so that a cross compiler without a C library builds it. */
#ifndef HARNESS_STDIO_H
#define HARNESS_STDIO_H

/* Knows %d and %s; returns 0. */
int printf(const char *format, ...);

#endif
