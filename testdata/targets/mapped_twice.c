/* A program that loads a library with a probe several times, each time into a namespace of its own but the first, and with -DLIBRARY that library.
 * The probe is hit only while the semaphore of the copy is set. With LD_AUDIT the loader has a copy of its own, too. Commands:
 *   load PATH     loads it
 *   hit COPY N    hits the probe of a copy, and prints how often it was enabled
 *   close COPY    unloads a copy
 *   semaphores    prints the semaphores of the copies that are loaded */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>

#ifdef LIBRARY
__extension__ volatile unsigned short twice_hit_semaphore __attribute__((section(".probes")));

int twice_hit(int times) {
  int enabled = 0;
  for (int i = 0; i < times; i++)
    if (twice_hit_semaphore > 0) {
      STAP_PROBE1(twice, hit, i);
      enabled++;
    }
  return enabled;
}

unsigned la_version(unsigned version) { return version; }
#else
static void *copies[16];

static void *symbol(int copy, const char *name) {
  void *found = copies[copy] ? dlsym(copies[copy], name) : 0;
  if (copies[copy] && !found)
    exit(1);
  return found;
}

int main(void) {
  char command[16], path[4096];
  int loaded = 0, copy, times;
  while (scanf("%15s", command) == 1) {
    if (!strcmp(command, "load") && scanf("%4095s", path) == 1) {
      copies[loaded] = dlmopen(loaded ? LM_ID_NEWLM : LM_ID_BASE, path, RTLD_NOW);
      if (!copies[loaded++]) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
      }
      puts("loaded");
    }
    if (!strcmp(command, "hit") && scanf("%d %d", &copy, &times) == 2) {
      int (*hit)(int);
      *(void **)&hit = symbol(copy, "twice_hit");
      printf("enabled %d\n", hit(times));
    }
    if (!strcmp(command, "close") && scanf("%d", &copy) == 1) {
      dlclose(copies[copy]);
      copies[copy] = 0;
      puts("closed");
    }
    if (!strcmp(command, "semaphores")) {
      for (copy = 0; copy < loaded; copy++)
        if (copies[copy])
          printf("%hu ", *(unsigned short *)symbol(copy, "twice_hit_semaphore"));
      puts("");
    }
    fflush(stdout);
  }
  return 0;
}
#endif
