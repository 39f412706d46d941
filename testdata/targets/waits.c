/* Waits of known kinds and lengths, each between hits of waits:work__start and waits:work__done with the number of the work.
 *
 * The program reads commands from standard input, and prints a line for each work, `work NUMBER TID CPU WAIT`, ns by its own clocks: how long the
 * thread was on a CPU, and how long it waited for something other than one; then `done`.
 *
 *     spin MS     runs
 *     sleep MS    sleeps
 *     mutex MS    waits for a mutex that another thread holds
 *     nested MS   sleeps; within it, another work that sleeps twice as long and runs
 *     crowd N     N threads at a time that sleep 10 ms each
 *     reuse MS    a process sleeps and ends, and another one gets its id
 *     exec MS     a thread other than the first sleeps and executes this program; another process gets its id
 *
 * Of processes and threads that end, there are no lines of works but `id NUMBER`, the reused one; `busy` if it was taken by others. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *program;
static int works;

static int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int thread_id(void) { return (int)syscall(SYS_gettid); }

__attribute__((noinline, noipa)) static void begin(int number) { STAP_PROBE1(waits, work__start, number); }

__attribute__((noinline, noipa)) static void end(int number) { STAP_PROBE1(waits, work__done, number); }

static void spin(long ms) {
  int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
  while (now(CLOCK_THREAD_CPUTIME_ID) < until)
    ;
}

/* Returns how long it was to wait: being woken late is waiting for a CPU. */
static int64_t nap(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, 0);
  return ms * 1000000;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int64_t unlocked;
static int is_held[2];

static void *hold(void *ms) {
  pthread_mutex_lock(&mutex);
  (void)!write(is_held[1], "", 1);
  nap((long)ms);
  unlocked = now(CLOCK_MONOTONIC);
  pthread_mutex_unlock(&mutex);
  return 0;
}

/* Returns how long the other thread held it from then on. */
static int64_t wait_for_mutex(void) {
  int64_t begun = now(CLOCK_MONOTONIC);
  pthread_mutex_lock(&mutex);
  int64_t held = unlocked - begun;
  pthread_mutex_unlock(&mutex);
  return held < 0 ? 0 : held;
}

static void work(const char *kind, long ms);

static int64_t wait_as(const char *kind, long ms) {
  int64_t waited = 0;
  if (!strcmp(kind, "spin"))
    spin(ms);
  else if (!strcmp(kind, "sleep"))
    waited = nap(ms);
  else if (!strcmp(kind, "mutex"))
    waited = wait_for_mutex();
  else if (!strcmp(kind, "inner")) {
    waited = nap(2 * ms);
    spin(ms);
  } else {
    waited = nap(ms);
    work("inner", ms);
    waited += 2 * ms * 1000000;
  }
  return waited;
}

static void work(const char *kind, long ms) {
  int number = works++;
  begin(number);
  int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
  int64_t waited = wait_as(kind, ms);
  cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
  end(number);
  printf("work %d %d %lld %lld\n", number, thread_id(), (long long)cpu, (long long)waited);
}

static void behind_mutex(long ms) {
  pthread_t holder;
  char byte;
  (void)!pipe(is_held);
  pthread_create(&holder, 0, hold, (void *)ms);
  (void)!read(is_held[0], &byte, 1);
  work("mutex", ms);
  pthread_join(holder, 0);
}

static void *member(void *number) {
  begin((int)(long)number);
  nap(10);
  end((int)(long)number);
  return 0;
}

static void crowd(long count) {
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long i = 0; i < count; i++)
    pthread_create(&threads[i], &small, member, (void *)(works + i));
  for (long i = 0; i < count; i++)
    pthread_join(threads[i], 0);
  works += (int)count;
  free(threads);
}

/* A child with this id, which hits once; 0 if another process has the id. */
static int child_with_id(pid_t id) {
  struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&id, .set_tid_size = 1};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    begin(-1);
    _exit(0);
  }
  if (child > 0)
    waitpid((pid_t)child, 0, 0);
  return child > 0;
}

static void say_id(pid_t id, int is_reused) {
  char line[64];
  int length = snprintf(line, sizeof line, "%s %d\n", is_reused ? "id" : "busy", id);
  (void)!write(1, line, (size_t)length);
}

static void reuse(long ms) {
  pid_t first = fork();
  if (first == 0) {
    begin(works);
    nap(ms);
    end(works);
    _exit(0);
  }
  works++;
  waitpid(first, 0, 0);
  say_id(first, child_with_id(first));
}

static void *execute(void *ms) {
  char id[16];
  begin(works);
  nap((long)ms);
  end(works);
  snprintf(id, sizeof id, "%d", thread_id());
  execl(program, program, id, (char *)0);
  _exit(1);
}

static void execute_from_thread(long ms) {
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_create(&thread, 0, execute, (void *)ms);
    pthread_join(thread, 0);
    _exit(1);
  }
  works++;
  waitpid(child, 0, 0);
}

int main(int argc, char **argv) {
  char line[64], word[32];
  long number;
  program = argv[0];
  setvbuf(stdout, 0, _IOLBF, 0);
  if (argc > 1) {
    pid_t id = atoi(argv[1]);
    begin(-2);
    say_id(id, child_with_id(id));
    return 0;
  }
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%31s %ld", word, &number) < 2)
      continue;
    if (!strcmp(word, "mutex"))
      behind_mutex(number);
    else if (!strcmp(word, "crowd"))
      crowd(number);
    else if (!strcmp(word, "reuse"))
      reuse(number);
    else if (!strcmp(word, "exec"))
      execute_from_thread(number);
    else
      work(word, number);
    printf("done\n");
  }
  return 0;
}
