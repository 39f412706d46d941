// Throws and catches; prints `throw OBJECT TYPEINFO NAME` for each, as libstdc++'s probes should show them.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <typeinfo>

struct Trouble {
  int number;
};

[[gnu::noinline]] static void fail(int number) { throw Trouble{number}; }

int main(int argc, char **argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 3;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  for (int i = 0; i < count; i++) {
    try {
      fail(i);
    } catch (const Trouble &trouble) {
      std::printf("throw %lu %lu %s\n", (unsigned long)&trouble, (unsigned long)&typeid(Trouble), typeid(Trouble).name());
    }
  }
  return 0;
}
