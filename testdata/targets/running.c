// Hits its probe, of the provider that an option of the compiler defines, as often as each line of its input says, and prints how often it did in all.
#include <stdio.h>
#include <sys/sdt.h>

int main(void) {
  long hits = 0;
  int count;
  while (scanf("%d", &count) == 1) {
    while (count-- > 0) {
      hits++;
      DTRACE_PROBE1(PROVIDER, hit, hits);
    }
    printf("%ld\n", hits);
    fflush(stdout);
  }
  return 0;
}
