// Loads a library with a probe twice as libstapsdt does: from memory, and from a file that is then removed. Hits the probe of each as often as each
// line of its input says, and prints how many hits that were in all, and before how many of them the probe was enabled, as libstapsdt finds out: whether its
// first instruction is a breakpoint. With -DLIBRARY it is the library; the provider is an option of the compiler, too.
// With a number as second argument it loads and unloads the library so often instead, from memory and from a file in turn. Each time it hits the probe
// every millisecond until 20 times it was enabled, with the number of the load times 2^32 plus that of the hit, both from 0, and prints the time when the
// library was loaded and that of each hit (CLOCK_MONOTONIC, ns), in one line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

#ifdef LIBRARY
void fire(long number) { DTRACE_PROBE1(PROVIDER, hit, number); }
#else
typedef void Fire(long number);

static void fail(const char *what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static void *handle;

static Fire *load(const char *library, int copy) {
  char path[64], bytes[65536];
  ssize_t count;
  int from = open(library, O_RDONLY);
  if (from < 0 || copy < 0) fail("open");
  while ((count = read(from, bytes, sizeof bytes)) > 0)
    if (write(copy, bytes, count) != count) fail("write");
  close(from);
  snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
  handle = dlopen(path, RTLD_NOW);
  Fire *fire = handle ? (Fire *)dlsym(handle, "fire") : NULL;
  if (!fire) fail("dlopen");
  return fire;
}

static int in_memory(void) { return memfd_create("libstapsdt:provider", 0); }

static int is_enabled(Fire *fire) { return *(volatile unsigned char *)fire != 0x90; }

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void load_and_unload(const char *library, long number) {
  char name[] = "./provider-XXXXXX";
  int is_file = number % 2, file = is_file ? mkstemp(name) : in_memory(), enabled = 0;
  Fire *fire = load(library, file);
  if (is_file) unlink(name);
  printf("%ld", now());
  for (long hit = 0; enabled < 20 && hit < 60000; hit++) {
    enabled += is_enabled(fire);
    printf(" %ld", now());
    fire(number << 32 | hit);
    usleep(1000);
  }
  puts("");
  dlclose(handle);
  close(file);
}

int main(int count, char **arguments) {
  char name[] = "./provider-XXXXXX";
  if (count < 2) fail("no library");
  for (long number = 0; count > 2 && number < atol(arguments[2]); number++) load_and_unload(arguments[1], number);
  if (count > 2) return 0;
  int file = mkstemp(name);
  Fire *fires[] = {load(arguments[1], in_memory()), load(arguments[1], file)};
  unlink(name);
  puts("loaded");
  fflush(stdout);
  int number;
  while (scanf("%d", &number) == 1) {
    long hits = 0, enabled = 0;
    for (int i = 0; i < number; i++)
      for (int which = 0; which < 2; which++) {
        enabled += is_enabled(fires[which]);
        fires[which](++hits);
      }
    printf("%ld %ld\n", hits, enabled);
    fflush(stdout);
  }
  return 0;
}
#endif
