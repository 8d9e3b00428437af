/* AArch64 and RISC-V without a C library, as a Linux program, which QEMU's user mode (or the machine itself) runs. */
#include "harness.h"

static long system_call(long number, long a, long b, long c)
{
#if defined(__aarch64__)
    register long n __asm__("x8") = number;
    register long x __asm__("x0") = a;
    register long y __asm__("x1") = b;
    register long z __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x) : "r"(n), "r"(y), "r"(z) : "memory");
#elif defined(__riscv)
    register long n __asm__("a7") = number;
    register long x __asm__("a0") = a;
    register long y __asm__("a1") = b;
    register long z __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(x) : "r"(n), "r"(y), "r"(z) : "memory");
#else
#error "this harness is for AArch64 and RISC-V"
#endif
    return x;
}

void machine_write(const char *text, unsigned length)
{
    system_call(64, 1, (long)text, (long)length); /* write */
}

void machine_exit(int status)
{
    for (;;) system_call(94, status, 0, 0); /* exit_group */
}

void _start(void)
{
    machine_exit(main());
}
