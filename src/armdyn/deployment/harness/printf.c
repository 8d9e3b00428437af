/* A printf of %d and %s, enough for the test program. */
#include <stdarg.h>

#include "harness.h"
#include "stdio.h"

static void put_text(const char *text)
{
    unsigned length = 0;
    while (text[length] != '\0') ++length;
    machine_write(text, length);
}

static void put_number(int number)
{
    char digits[12];
    unsigned place = sizeof digits, rest = number < 0 ? 0u - (unsigned)number : (unsigned)number;
    do {
        digits[--place] = (char)('0' + rest % 10u);
        rest /= 10u;
    } while (rest != 0u);
    if (number < 0) digits[--place] = '-';
    machine_write(digits + place, (unsigned)sizeof digits - place);
}

int printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    for (; *format != '\0'; ++format) {
        if (*format != '%') {
            machine_write(format, 1);
        } else if (*++format == 'd') {
            put_number(va_arg(arguments, int));
        } else if (*format == 's') {
            put_text(va_arg(arguments, const char *));
        } else {
            machine_exit(99);
        }
    }
    va_end(arguments);
    return 0;
}
