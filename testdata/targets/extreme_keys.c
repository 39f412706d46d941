/* Hits extreme:keys 576 times with a signed and an unsigned number of 64 bits and a string: the extremes of both, and strings that are empty, or look like
 * what stands for none. Each of their 96 combinations comes 6 times. */
#include <stdint.h>
#include <sys/sdt.h>

static volatile int64_t wide[] = {INT64_MIN, -1, 0, INT64_MAX};
static volatile uint64_t upper[] = {0, 1, UINT64_MAX, (uint64_t)1 << 63};
static const char *volatile text[] = {"", "-", "NULL", " ", "a,b", 0};

int main(void) {
  for (int i = 0; i < 576; i++)
    STAP_PROBE3(extreme, keys, wide[i % 4], upper[i / 4 % 4], text[i / 16 % 6]);
  return 0;
}
