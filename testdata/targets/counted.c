/* Hits counted:step only while its semaphore is set, and prints for each process `enabled HITS of TIMES`.
 *
 *     counted N US            N times, with a pause of US microseconds after each
 *     counted N US fork       so do this process and a child of it
 *     counted N US exec M     then executes itself, M times in all
 *     counted N US load LIB   in a library that it opens, which is this file compiled with -DLIBRARY
 * With -DALWAYS the probe is hit whether or not the semaphore is set; it is counted if it is. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>

__extension__ volatile unsigned short counted_step_semaphore __attribute__((section(".probes")));

__attribute__((noinline)) int counted_steps(int times, int pause) {
  int hits = 0;
  for (int i = 0; i < times; i++) {
    int enabled = counted_step_semaphore > 0;
#ifdef ALWAYS
    STAP_PROBE1(counted, step, i);
#else
    if (enabled)
      STAP_PROBE1(counted, step, i);
#endif
    hits += enabled;
    if (pause)
      usleep((useconds_t)pause);
  }
  printf("enabled %d of %d\n", hits, times);
  fflush(stdout);
  return hits;
}

#ifndef LIBRARY
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
  int times = argc > 1 ? atoi(argv[1]) : 1, pause = argc > 2 ? atoi(argv[2]) : 0;
  const char *what = argc > 3 ? argv[3] : "";
  int (*steps)(int, int) = counted_steps;
  if (!strcmp(what, "load")) {
    void *library = dlopen(argv[4], RTLD_NOW);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    *(void **)&steps = dlsym(library, "counted_steps");
  }
  pid_t child = strcmp(what, "fork") ? 1 : fork();
  steps(times, pause);
  if (child == 0)
    return 0;
  if (!strcmp(what, "fork"))
    waitpid(child, 0, 0);
  if (!strcmp(what, "exec") && atoi(argv[4]) > 1) {
    char more[16];
    snprintf(more, sizeof more, "%d", atoi(argv[4]) - 1);
    execl("/proc/self/exe", "again", argv[1], argv[2], "exec", more, (char *)0);
  }
  return 0;
}
#endif
