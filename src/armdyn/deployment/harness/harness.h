/* What a machine does for the test program: text out, and the end. */
#ifndef HARNESS_H
#define HARNESS_H

void machine_write(const char *text, unsigned length);
void machine_exit(int status);
int main(void);

#endif
