/* Spans of known lengths, one after the other: spin:op__start(number, endpoint) to spin:op__done(number).
 *     spin MILLISECONDS MICROSECONDS MORE ENDPOINTS
 * For so many milliseconds: each takes MICROSECONDS for the first endpoint, twice that for the second, and so on, MORE microseconds more, and up to
 * 10 more at random. Endpoints take turns at random. */
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

int main(int count, char **words)
{
    if (count < 5)
        return 2;
    double end = now() + atof(words[1]) * 1e3, length = atof(words[2]), more = atof(words[3]);
    int endpoints = atoi(words[4]);
    for (int i = 0; now() < end; i++) {
        int endpoint = rand() % endpoints;
        DTRACE_PROBE2(spin, op__start, i, endpoint);
        double until = now() + length * (endpoint + 1) + more + rand() % 10;
        while (now() < until)
            ;
        DTRACE_PROBE1(spin, op__done, i);
    }
}
