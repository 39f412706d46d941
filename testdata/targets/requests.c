/* Threads that serve requests, and a function that calls itself: begins and ends of spans as fast as they come.
 *     requests COUNT THREADS [log]
 * Prints the number of requests. With `log` some requests change the CPU, the first calls of all threads overlap, the threads finish
 * jobs that the main thread began, and each request is printed: `request ID KIND INNER OUTER`, what is inside of the span and what
 * the span is inside of, ns of CLOCK_MONOTONIC; `job ID INNER OUTER` for jobs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

/* Jobs of each thread. */
#define JOBS 50

struct times {
    long before_start, after_start, before_done, after_done;
};

static long count;
static struct times *requests, *jobs;
static pthread_barrier_t first_calls;
static __thread int has_called;

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void stay_on(long cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

__attribute__((noinline)) static void descend(int depth)
{
    DTRACE_PROBE1(requests, function__entry, depth);
    if (requests && !has_called) {
        has_called = 1;
        pthread_barrier_wait(&first_calls);
    }
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

__attribute__((noinline)) static void serve_and_log(long id, int kind)
{
    struct times *times = &requests[id];
    times->before_start = now();
    DTRACE_PROBE2(requests, request__start, id, kind);
    times->after_start = now();
    if (id % 16 == 0)
        descend(1 + (int)(id % 3));
    if (id % 64 == 1)
        stay_on(id / 64 % 2);
    times->before_done = now();
    DTRACE_PROBE2(requests, request__done, id, 200 + (int)(id % 5));
    times->after_done = now();
}

static void begin_job(long id)
{
    jobs[id].before_start = now();
    DTRACE_PROBE1(requests, job__begin, id);
    jobs[id].after_start = now();
}

static void end_job(long id)
{
    jobs[id].before_done = now();
    DTRACE_PROBE1(requests, job__end, id);
    jobs[id].after_done = now();
}

static void *work(void *thread)
{
    for (long i = 0; jobs && i < JOBS; i++)
        end_job((long)thread * JOBS + i);
    for (long i = 0; i < count; i++)
        (requests ? serve_and_log : serve)((long)thread * count + i, (int)(i % 7));
    return 0;
}

static void print(const char *what, const struct times *times)
{
    printf("%s %ld %ld\n", what, times->before_done - times->after_start, times->after_done - times->before_start);
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    char what[64];
    count = argc > 1 ? atol(argv[1]) : 1000;
    long others = argc > 2 ? atol(argv[2]) : 2;
    others = others < 64 ? others : 64;
    pthread_barrier_init(&first_calls, 0, others);
    if (argc > 3) {
        requests = calloc(count * others, sizeof *requests);
        jobs = calloc(JOBS * others, sizeof *jobs);
        for (long i = 0; i < JOBS * others; i++)
            begin_job(i);
    }
    for (long i = 0; i < others; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < others; i++)
        pthread_join(threads[i], 0);
    printf("%ld\n", count * others);
    for (long i = 0; requests && i < count * others; i++) {
        snprintf(what, sizeof what, "request %ld %ld", i, i % count % 7);
        print(what, &requests[i]);
    }
    for (long i = 0; jobs && i < JOBS * others; i++) {
        snprintf(what, sizeof what, "job %ld", i);
        print(what, &jobs[i]);
    }
    return 0;
}
