/*
 * Cortex-M without a C library: vector table, floating-point unit on, Arm semihosting for text and the end.
 * qemu-system-arm answers the semihosting calls (-semihosting); so does a debug probe on a real board.
 */
#include "harness.h"

extern unsigned char stack_top[];

static int semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void machine_write(const char *text, unsigned length)
{
    unsigned k;
    for (k = 0; k < length; ++k) semihosting(3, text + k); /* SYS_WRITEC */
}

void machine_exit(int status)
{
    int argument[2];
    argument[0] = 0x20026; /* ADP_Stopped_ApplicationExit */
    argument[1] = status;
    semihosting(0x20, argument); /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

void reset(void)
{
    volatile unsigned *access = (volatile unsigned *)0xE000ED88u; /* CPACR */
    *access |= 0xFu << 20;                                        /* full access to the floating-point unit */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    machine_exit(main());
}

static void fault(void)
{
    machine_exit(98);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault,
};
