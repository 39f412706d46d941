/* Stacks of C++: frames that are realigned and of variable size, exceptions that pass them, destructors that run meanwhile.
 *     stacks DEPTH
 * The probe `hit` is hit below up to DEPTH frames of `deep`. */
#include <alloca.h>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/sdt.h>

static volatile long sum;
static long depth;

struct Guard {
  ~Guard() {
    STAP_PROBE1(stacks, hit, depth);
    sum = sum + 1;
  }
};

__attribute__((noinline)) void leaf(long number) {
  if (number == 0)
    throw std::runtime_error("thrown");
  STAP_PROBE1(stacks, hit, depth);
  sum = sum + number;
}

__attribute__((noinline)) long wide(long number) {
  alignas(64) volatile char aligned[256];
  char *sized = static_cast<char *>(alloca(number * 16 + 16));
  memset(sized, static_cast<int>(number), number * 16 + 16);
  aligned[number] = sized[number];
  try {
    Guard guard;
    leaf(number);
  } catch (std::exception &) {
    STAP_PROBE1(stacks, hit, depth);
    sum = sum + 2;
  }
  return aligned[number];
}

__attribute__((noinline)) long deep(long number) {
  return number ? deep(number - 1) + wide(number % 3) : wide(0);
}

int main(int argc, char **argv) {
  depth = argc > 1 ? atoi(argv[1]) : 3;
  sum = sum + deep(depth);
  return 0;
}
