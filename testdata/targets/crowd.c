// Very many of something:
//   children N               N children, each of which hits the probe once when something is on the standard input, and ends
//   files N PATH             maps the code of N copies of a file, each in a memfd of its own, until something is on the standard input
//   starts RATE N PROGRAM    starts a program N times, RATE times a second, one after the other, with the arguments that follow
// The first two print `ready` when they have made them. At the end it prints how many there were.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(int succeeded, const char *what) {
  if (succeeded) return;
  perror(what);
  exit(1);
}

static void ready(void) {
  puts("ready");
  fflush(stdout);
}

static long children(long number) {
  long ended = 0;
  int ask[2];
  char byte;
  check(!pipe(ask), "pipe");
  for (long child = 0; child < number; child++) {
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid) continue;
    close(ask[1]);
    if (read(ask[0], &byte, 1) == 0) DTRACE_PROBE1(PROVIDER, hit, child);
    _exit(0);
  }
  ready();
  getchar();
  close(ask[1]);
  while (wait(NULL) > 0) ended++;
  return ended;
}

static long files(long number, const char *path) {
  static char content[1 << 16];
  int from = open(path, O_RDONLY);
  ssize_t size = read(from, content, sizeof content);
  check(size > 0, path);
  for (long file = 0; file < number; file++) {
    int memory = memfd_create("crowd", MFD_CLOEXEC);
    check(memory >= 0 && write(memory, content, size) == size, "memfd_create");
    check(mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory, 0) != MAP_FAILED, "mmap");
    close(memory);
  }
  ready();
  getchar();
  return number;
}

static long starts(long rate, long number, char **command) {
  struct timespec next;
  long ended = 0;
  int status;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long start = 0; start < number; start++) {
    pid_t pid;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    next.tv_nsec += 1000000000 / rate;
    if (next.tv_nsec >= 1000000000) next.tv_sec++, next.tv_nsec -= 1000000000;
    check(!posix_spawn(&pid, command[0], NULL, NULL, command, environ), command[0]);
    ended += waitpid(pid, &status, 0) == pid && status == 0;
  }
  return ended;
}

int main(int count, char **arguments) {
  long made = 0, number = count > 2 ? atol(arguments[2]) : 0;
  if (number < 1) return 2;
  if (!strcmp(arguments[1], "children")) made = children(number);
  if (!strcmp(arguments[1], "files") && count > 3) made = files(number, arguments[3]);
  if (!strcmp(arguments[1], "starts") && count > 4) made = starts(number, atol(arguments[3]), arguments + 4);
  printf("%ld\n", made);
  return 0;
}
