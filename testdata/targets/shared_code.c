/* Maps its own code a second time, shared, and hits the probe there and where the loader has mapped it: once in each for each line of input. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>

__attribute__((noinline)) static void hit(int copy) { STAP_PROBE1(shared_code, hit, copy); }

int main(void) {
  char line[4400], path[4096];
  unsigned long start, end, offset, code = (unsigned long)hit;
  void (*copy)(int) = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &offset, path) == 4 && start <= code && code < end) {
      char *mapped = mmap(0, end - start, PROT_READ | PROT_EXEC, MAP_SHARED, open(path, O_RDONLY), (long)offset);
      if (mapped == MAP_FAILED)
        return 1;
      copy = (void (*)(int))(mapped + (code - start));
    }
  if (!copy)
    return 1;
  puts("mapped");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    hit(1);
    copy(2);
    puts("done");
    fflush(stdout);
  }
  return 0;
}
