/* Probes of which no schema is known: names and types are in the debugging information only. Prints what it hands over. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

enum colour { RED, GREEN = 5, BLUE = -2 };
typedef enum colour Colour;
typedef const char *Text;

/* Inlined into its callers: its variables are copies there. */
static inline void note_length(int fd, long length)
{
    DTRACE_PROBE2(debug, length, fd, length);
}

static __attribute__((noinline)) void serve(Text url, const int fd, Colour colour, bool secure, void *handle,
                                            unsigned char *raw, uint16_t port)
{
    DTRACE_PROBE7(debug, serve, url, fd, colour, secure, handle, raw, port);
    long length = 0;
    while (url[length])
        length++;
    note_length(fd, length);
    /* A sum is no variable. */
    DTRACE_PROBE2(debug, sum, fd + 1, length);
    printf("%s %d %d %d %ld\n", url, fd, colour, secure, length);
}

int main(int argc, char **argv)
{
    static const Colour colours[] = {RED, GREEN, BLUE};
    static unsigned char raw[] = {0xff, 0};
    for (int i = 0; i < argc; i++)
        serve(argv[i], i - 1, colours[i % 3], i & 1, raw, raw, (uint16_t)(65535 - i));
    return 0;
}
