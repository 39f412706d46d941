// Loads a library with a probe twice as libstapsdt does: from memory, and from a file that is then removed. Hits the probe of each as often as each
// line of its input says, and prints how many hits that were in all, and before how many of them the probe was enabled, as libstapsdt finds out: whether its
// first instruction is a breakpoint. With -DLIBRARY it is the library; the provider is an option of the compiler, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

#ifdef LIBRARY
void fire(long number) { DTRACE_PROBE1(PROVIDER, hit, number); }
#else
typedef void Fire(long number);

static void fail(const char *what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static Fire *load(const char *library, int copy) {
  char path[64], bytes[65536];
  ssize_t count;
  int from = open(library, O_RDONLY);
  if (from < 0 || copy < 0) fail("open");
  while ((count = read(from, bytes, sizeof bytes)) > 0)
    if (write(copy, bytes, count) != count) fail("write");
  close(from);
  snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
  void *loaded = dlopen(path, RTLD_NOW);
  Fire *fire = loaded ? (Fire *)dlsym(loaded, "fire") : NULL;
  if (!fire) fail("dlopen");
  return fire;
}

int main(int count, char **arguments) {
  char name[] = "./provider-XXXXXX";
  if (count < 2) fail("no library");
  int file = mkstemp(name);
  Fire *fires[] = {load(arguments[1], memfd_create("libstapsdt:provider", 0)), load(arguments[1], file)};
  unlink(name);
  puts("loaded");
  fflush(stdout);
  int number;
  while (scanf("%d", &number) == 1) {
    long hits = 0, enabled = 0;
    unsigned char nop = 0x90;
    for (int i = 0; i < number; i++)
      for (int which = 0; which < 2; which++) {
        enabled += *(volatile unsigned char *)fires[which] != nop;
        fires[which](++hits);
      }
    printf("%ld %ld\n", hits, enabled);
    fflush(stdout);
  }
  return 0;
}
#endif
