/* A probe in functions that are inlined into each other, one of them in two callers, and through std::sort.
   SPDX-License-Identifier: MIT */
#include <sys/sdt.h>

#include <algorithm>
#include <vector>

static volatile int sink;

namespace work {

inline __attribute__((always_inline)) void hit(int value) { DTRACE_PROBE1(inlined, hit, value); }

struct Greater {
  __attribute__((noinline)) bool operator()(int a, int b) const {
    if (a == 3) hit(a);
    return a > b;
  }
};

template <typename T>
inline __attribute__((always_inline)) void twice(T value) {
  hit(value);
  sink = sink + value;
  hit(value + 1);
}

__attribute__((noinline)) void first(int value) {
  twice(value);
  sink = sink + 1;
}

inline __attribute__((always_inline)) void calls(int value) {
  first(value + 10);
  sink = sink + 2;
}

__attribute__((noinline)) void second(int value) {
  calls(value);
  hit(value);
  std::vector<int> many{5, 3, 9, 3, 1};
  std::sort(many.begin(), many.end(), Greater());
  sink = sink + many[0];
}

}  // namespace work

int main() {
  work::first(1);
  work::second(2);
  return 0;
}
