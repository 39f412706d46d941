/* Probes in programs that need no library, for machines that are not here: see testdata/README.md. They are never run. */
#include <sys/sdt.h>

enum colour { RED, GREEN = 5 };

/* Variables in their frame. */
__attribute__((noinline, optimize(0))) void framed(const char *url, int fd, enum colour colour)
{
    volatile unsigned short port = fd;
    DTRACE_PROBE3(bare, framed, url, fd, port);
    (void)colour;
}

/* Variables in registers; a sum is none. */
__attribute__((noinline)) void _start(const char *url, int fd, enum colour colour)
{
    DTRACE_PROBE4(bare, registers, url, fd, colour, fd + 1);
    framed(url, fd, colour);
    for (;;) {
    }
}
