/* Threads that serve requests, and a function that calls itself: begins and ends of spans as fast as they come.
 *     requests COUNT THREADS
 * Prints the number of requests. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

static long count;

__attribute__((noinline)) static void descend(int depth)
{
    DTRACE_PROBE1(requests, function__entry, depth);
    if (depth > 1)
        descend(depth - 1);
    DTRACE_PROBE1(requests, function__return, depth);
}

__attribute__((noinline)) static void serve(long id, int kind)
{
    DTRACE_PROBE2(requests, request__start, id, kind);
    if (id % 16 == 0)
        descend(1 + (int)(id % 3));
    DTRACE_PROBE2(requests, request__done, id, 200 + (int)(id % 5));
}

static void *work(void *thread)
{
    for (long i = 0; i < count; i++)
        serve((long)thread * count + i, (int)(i % 7));
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    count = argc > 1 ? atol(argv[1]) : 1000;
    long others = argc > 2 ? atol(argv[2]) : 2;
    for (long i = 0; i < others && i < 64; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < others && i < 64; i++)
        pthread_join(threads[i], 0);
    printf("%ld\n", count * others);
    return 0;
}
