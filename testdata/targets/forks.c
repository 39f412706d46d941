/* A program that starts processes in many ways. Its threads do it all at once:
 *     forks THREADS
 * reads a line, then starts THREADS threads (0 to 64), each of which forks a child, one by vfork and exec, and one with a child of its own, and hits the
 * probe before, between and after. Every process hits it, too. At the end a thread other than the first executes this program anew.
 * Prints `fire VALUE` for each hit before it is made, and `died N`, the number of children that did not end as they should.
 *     forks hit VALUE
 * hits the probe once and ends.
 *     forks left LIBRARY
 * reads a line and ends its first thread; another one reads a line and loads LIBRARY.
 *     forks many COUNT
 * reads a line and starts COUNT children, each of which hits the probe with its number, then prints `pid PID` for each and `ready`; reads another line, after
 * which they hit it again, each with 10000 and its number, and end. Prints `died N`.
 *     forks often MILLISECONDS
 * reads a line, and for so long starts children one after the other, each of which hits the probe with its number and ends. Prints `forked N` and `died N`. */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__extension__ volatile unsigned short forks_hit_semaphore __attribute__((section(".probes")));

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

/* A child that lives until it may end: `ask` closes then, and it has hit when `answer` has a byte. */
static void live(long number, int ask, int answer) {
  char byte = 0;
  hit(number);
  if (write(answer, &byte, 1) != 1 || read(ask, &byte, 1) != 0)
    _exit(1);
  _exit(hit(10000 + number));
}

static int many(long count) {
  int ask[2], answer[2];
  char line[16], byte;
  static pid_t children[1000];
  if (count < 0 || count > 1000 || pipe(ask) || pipe(answer) || !fgets(line, sizeof line, stdin))
    return 1;
  for (long i = 0; i < count; i++) {
    children[i] = fork();
    if (!children[i]) {
      close(ask[1]);
      live(i, ask[0], answer[1]);
    }
  }
  for (long i = 0; i < count; i++)
    if (read(answer[0], &byte, 1) != 1)
      return 1;
  for (long i = 0; i < count; i++)
    dprintf(1, "pid %d\n", children[i]);
  dprintf(1, "ready\n");
  char *again = fgets(line, sizeof line, stdin);
  close(ask[1]);
  for (long i = 0; i < count; i++)
    wait_for(children[i]);
  dprintf(1, "died %ld\n", died);
  return !again;
}

static int often(long milliseconds) {
  struct timespec begin, now;
  long count = 0;
  char line[16];
  if (!fgets(line, sizeof line, stdin))
    return 1;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    pid_t child = fork();
    if (!child)
      _exit(hit(count));
    wait_for(child);
    count++;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
  dprintf(1, "forked %ld\ndied %ld\n", count, died);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "many"))
    return many(atol(argv[2]));
  if (argc > 2 && !strcmp(argv[1], "often"))
    return often(atol(argv[2]));
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
