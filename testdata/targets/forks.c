/* A program whose threads all start processes at once:
 *     forks THREADS
 * reads a line, then starts THREADS threads (0 to 64), each of which forks a child, one by vfork and exec, and one with a child of its own, and hits the
 * probe before, between and after. Every process hits it, too. At the end a thread other than the first executes this program anew.
 * Prints `fire VALUE` for each hit before it is made, and `died N`, the number of children that did not end as they should.
 *     forks hit VALUE
 * hits the probe once and ends.
 *     forks left LIBRARY
 * reads a line and ends its first thread; another one reads a line and loads LIBRARY. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t together;
static long died;

/* In one write, because all processes share the output. */
__attribute__((noinline)) static int hit(long value) {
  char line[32];
  int length = snprintf(line, sizeof line, "fire %ld\n", value);
  if (write(1, line, length) != length)
    abort();
  STAP_PROBE1(forks, hit, value);
  return 0;
}

static void wait_for(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
    __atomic_add_fetch(&died, 1, __ATOMIC_SEQ_CST);
}

static void execute(long value) {
  char text[24];
  snprintf(text, sizeof text, "%ld", value);
  execl("/proc/self/exe", "forks", "hit", text, (char *)0);
  _exit(127);
}

static void *work(void *argument) {
  long value = 100 * (long)argument;
  pthread_barrier_wait(&together);
  pid_t child = fork();
  if (!child)
    _exit(hit(value + 1));
  hit(value + 2);
  wait_for(child);
  child = vfork();
  if (!child)
    execute(value + 3);
  wait_for(child);
  hit(value + 4);
  child = fork();
  if (!child) {
    pid_t grandchild = fork();
    if (!grandchild)
      _exit(hit(value + 5));
    hit(value + 6);
    wait_for(grandchild);
    _exit(died != 0);
  }
  wait_for(child);
  hit(value + 7);
  return 0;
}

static void *last(void *argument) {
  execute((long)argument);
  return 0;
}

static void *load(void *library) {
  char line[16];
  if (!fgets(line, sizeof line, stdin) || !dlopen(library, RTLD_NOW))
    _exit(1);
  return 0;
}

static void leave(char *library) {
  char line[16];
  pthread_t thread;
  if (!fgets(line, sizeof line, stdin) || pthread_create(&thread, 0, load, library))
    _exit(1);
  pthread_exit(0);
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "left"))
    leave(argv[2]);
  if (argc > 2)
    return hit(atol(argv[2]));
  long count = argc > 1 ? atol(argv[1]) : 1;
  pthread_t threads[64];
  char line[16];
  if (count < 0 || count > 64)
    return 2;
  hit(1);
  if (!fgets(line, sizeof line, stdin))
    hit(2);
  pthread_barrier_init(&together, 0, count ? count : 1);
  for (long i = 0; i < count; i++)
    pthread_create(&threads[i], 0, work, (void *)(i + 1));
  for (long i = 0; i < count; i++)
    pthread_join(threads[i], 0);
  dprintf(1, "died %ld\n", died);
  pthread_create(&threads[0], 0, last, (void *)3);
  pthread_join(threads[0], 0);
  return 1;
}
