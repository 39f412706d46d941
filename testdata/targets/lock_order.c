/* Threads that wait for locks in turn, and know who had them.
 *     lock_order THREADS ROUNDS LOCKS
 * Each thread does ROUNDS pieces of work, each in one lock, with probes: work__start(work, name), lock__acquire(lock), lock__acquired(lock),
 * lock__release(lock), work__done(work). Every fifth piece of work fails and fires no work__done. At the end it prints a line for each: TID NAME WORK LOCK WAITED ACQUIRED RELEASED, the last
 * three as times of CLOCK_MONOTONIC in ns, read at the probes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct entry {
  int tid, work, lock;
  unsigned long long waited, acquired, released;
};

static int rounds, lock_count;
static pthread_mutex_t locks[16];

static unsigned long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void nap(unsigned us) {
  struct timespec time = {0, us * 1000};
  nanosleep(&time, 0);
}

struct thread {
  int number;
  struct entry *entries;
};

static void in_lock(struct entry *entry, unsigned *state) {
  pthread_mutex_t *lock = &locks[entry->lock];
  entry->waited = now();
  STAP_PROBE1(lock_order, lock__acquire, lock);
  pthread_mutex_lock(lock);
  STAP_PROBE1(lock_order, lock__acquired, lock);
  entry->acquired = now();
  nap(rand_r(state) % 2 ? 300 : 4000);
  entry->released = now();
  STAP_PROBE1(lock_order, lock__release, lock);
  pthread_mutex_unlock(lock);
}

static void *work(void *argument) {
  struct thread *thread = argument;
  unsigned state = thread->number + 1;
  char name[16];
  snprintf(name, sizeof name, "worker-%d", thread->number);
  pthread_setname_np(pthread_self(), name);
  for (int round = 0; round < rounds; round++) {
    struct entry *entry = &thread->entries[round];
    entry->tid = (int)syscall(SYS_gettid);
    entry->work = thread->number * 1000 + round;
    entry->lock = rand_r(&state) % lock_count;
    STAP_PROBE2(lock_order, work__start, entry->work, name);
    in_lock(entry, &state);
    if (round % 5 != 4)
      STAP_PROBE1(lock_order, work__done, entry->work);
    nap(rand_r(&state) % 500);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  int threads = atoi(argv[1]);
  rounds = atoi(argv[2]), lock_count = atoi(argv[3]);
  pthread_t *ids = calloc(threads, sizeof *ids);
  struct thread *all = calloc(threads, sizeof *all);
  for (int lock = 0; lock < lock_count; lock++)
    pthread_mutex_init(&locks[lock], 0);
  for (int number = 0; number < threads; number++) {
    all[number].number = number;
    all[number].entries = calloc(rounds, sizeof(struct entry));
    pthread_create(&ids[number], 0, work, &all[number]);
  }
  for (int number = 0; number < threads; number++)
    pthread_join(ids[number], 0);
  for (int number = 0; number < threads; number++)
    for (int round = 0; round < rounds; round++) {
      struct entry *entry = &all[number].entries[round];
      printf("%d worker-%d %d %d %llu %llu %llu\n", entry->tid, number, entry->work, entry->lock, entry->waited, entry->acquired, entry->released);
    }
  return 0;
}
