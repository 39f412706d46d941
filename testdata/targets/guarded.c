/* A probe that is hit only while its semaphore is raised: `guarded COUNT` hits it COUNT times. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdlib.h>
#include <sys/sdt.h>

__extension__ volatile unsigned short guarded_hit_semaphore __attribute__((section(".probes")));

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < count; i++) {
    if (guarded_hit_semaphore) {
      STAP_PROBE1(guarded, hit, i);
    }
  }
  return 0;
}
