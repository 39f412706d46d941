// Loads libraries with a probe while it runs, as each line of its input says, and prints how many times they hit it. Commands:
//   load PATH      opens a library
//   memory PATH    copies a library into a memfd, and opens that
//   keep PATH      the same, and the descriptor stays open, so that the next one is another library
//   unlinked PATH  copies a library to PATH.gone, opens that, and removes it
//   hit N          hits the probe N times
//   unload         closes the library
//   all            hits the probe of each library that was loaded, once
//   many PATH N    loads N copies in memfds, which stay, and hits the probe of each once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *library;
static void (*work)(long);
static long hits;
static void (*all[4096])(long);
static int loaded;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void copy(const char *path, int to) {
  char block[65536];
  ssize_t size;
  int from = open(path, O_RDONLY);
  if (from < 0) fail(path);
  while ((size = read(from, block, sizeof block)) > 0)
    if (write(to, block, size) != size) fail("write");
  close(from);
}

static void load(const char *path) {
  library = dlopen(path, RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  *(void **)&work = dlsym(library, "late_work");
  if (loaded < 4096) all[loaded++] = work;
}

// A library that is loaded by the name of an earlier one would be that one: the descriptor stays open meanwhile.
static int load_memory(const char *path) {
  char name[64];
  int memory = memfd_create("late", 0);
  if (memory < 0) fail("memfd_create");
  copy(path, memory);
  snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
  load(name);
  return memory;
}

static void load_unlinked(const char *path) {
  char name[4200];
  snprintf(name, sizeof name, "%s.gone", path);
  int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0755);
  if (file < 0) fail(name);
  copy(path, file);
  close(file);
  load(name);
  unlink(name);
}

int main(void) {
  struct rlimit files = {8192, 8192};
  setrlimit(RLIMIT_NOFILE, &files);
  char command[16], path[4096];
  int count;
  while (scanf("%15s", command) == 1) {
    if (!strcmp(command, "load") && scanf("%4095s", path) == 1) load(path);
    if (!strcmp(command, "memory") && scanf("%4095s", path) == 1) close(load_memory(path));
    if (!strcmp(command, "keep") && scanf("%4095s", path) == 1) load_memory(path);
    if (!strcmp(command, "unlinked") && scanf("%4095s", path) == 1) load_unlinked(path);
    if (!strcmp(command, "unload")) dlclose(library);
    if (!strcmp(command, "all"))
      for (int i = 0; i < loaded; i++) all[i](++hits);
    if (!strcmp(command, "hit") && scanf("%d", &count) == 1)
      while (count-- > 0) work(++hits);
    if (!strcmp(command, "many") && scanf("%4095s %d", path, &count) == 2)
      while (count-- > 0) {
        load_memory(path);
        work(++hits);
      }
    printf("%ld\n", hits);
    fflush(stdout);
  }
  return 0;
}
