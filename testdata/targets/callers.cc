/* One probe that is hit on several stacks, and spans that begin on several ones.
 *     callers ROUNDS [MORE [PAUSE]]
 * In each round, `Cart::add` is called MORE times more. After it the program sleeps for PAUSE microseconds.
 * At the end it prints of each function that called the one with the probe `hit`: its name, how often, and the sum of the probe's argument.
 * `work__begin` and `work__end` are a span within `serve`, which `quick` and `slow` call. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <sys/sdt.h>
#include <unistd.h>

struct Calls {
  long count, bytes;
};

static std::map<std::string, Calls> calls;
static volatile long sum;

extern "C" __attribute__((noinline)) void emit(const char *caller, long bytes) {
  STAP_PROBE1(callers, hit, bytes);
  Calls &known = calls[caller];
  known.count += 1;
  known.bytes += bytes;
}

namespace shop {
template <typename T> struct Cart {
  __attribute__((noinline)) void add(T bytes) {
    emit("shop::Cart<long>::add", bytes);
    sum = sum + 1;
  }
};

__attribute__((noinline)) long descend(long left) {
  long below = left ? descend(left - 1) + 1 : 0;
  if (left % 2 == 0)
    emit("shop::descend", left);
  sum = sum + left;
  return below;
}
} // namespace shop

extern "C" __attribute__((noinline)) int compare(const void *a, const void *b) {
  emit("compare", 1000);
  return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

extern "C" __attribute__((noinline)) void serve(long work) {
  STAP_PROBE1(callers, work__begin, work);
  for (long i = 0; i < work; ++i)
    sum = sum + i;
  STAP_PROBE1(callers, work__end, work);
}

extern "C" __attribute__((noinline)) void quick() {
  serve(10);
  sum = sum + 1;
}

extern "C" __attribute__((noinline)) void slow() {
  serve(200000);
  sum = sum + 1;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 3;
  long more = argc > 2 ? atol(argv[2]) : 0;
  useconds_t pause = argc > 3 ? atol(argv[3]) : 0;
  shop::Cart<long> cart;
  for (long round = 0; round < rounds; ++round) {
    int numbers[] = {3, 1, 2};
    cart.add(7);
    cart.add(8);
    for (long i = 0; i < more; ++i)
      cart.add(9);
    shop::descend(4);
    qsort(numbers, 3, sizeof *numbers, compare);
    quick();
    if (round % 4 == 0)
      slow();
    if (pause)
      usleep(pause);
  }
  for (const auto &[name, known] : calls)
    printf("%s %ld %ld\n", name.c_str(), known.count, known.bytes);
  return 0;
}
