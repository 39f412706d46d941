/* Hits a probe while another of its threads moves the one that hits from CPU to CPU, every 100 us.
 *     migrating COUNT
 * hits COUNT times. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int ended;
static pid_t hitting;

static void *move(void *unused) {
  cpu_set_t all;
  (void)unused;
  sched_getaffinity(0, sizeof all, &all);
  for (int cpu = 0; !ended; cpu = (cpu + 1) % CPU_SETSIZE) {
    cpu_set_t one;
    if (!CPU_ISSET(cpu, &all))
      continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(hitting, sizeof one, &one);
    usleep(100);
  }
  return 0;
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  pthread_t mover;
  hitting = (pid_t)syscall(SYS_gettid);
  pthread_create(&mover, 0, move, 0);
  for (long i = 0; i < count; i++)
    STAP_PROBE1(migrating, hit, i);
  ended = 1;
  pthread_join(mover, 0);
  return 0;
}
