// Exceptions within handlers of exceptions, thrown on and caught again, in threads. Prints `TYPE THROWN CAUGHT RETHROWN` for each type, with its
// mangled name.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <typeinfo>
#include <vector>

struct Refused {
  int depth;
};
struct Broken {
  int depth;
};

enum { REFUSED, BROKEN, RUNTIME, KINDS };
static std::atomic<long> thrown[KINDS], caught[KINDS], rethrown[KINDS];

[[noreturn, gnu::noinline]] static void fail(int kind, int depth) {
  thrown[kind]++;
  switch (kind) {
  case REFUSED:
    throw Refused{depth};
  case BROKEN:
    throw Broken{depth};
  default:
    throw std::runtime_error("failed");
  }
}

// Each handler may have exceptions of its own before it throws on what it has caught.
[[gnu::noinline]] static void attempt(unsigned *state, int depth) {
  auto below = [state](unsigned end) { return (*state = *state * 1103515245 + 12345) / 65536 % end; };
  auto handle = [&](int kind) {
    caught[kind]++;
    if (depth < 4 && below(2))
      try {
        attempt(state, depth + 1);
      } catch (...) {
        std::exception_ptr now = std::current_exception();
        const std::type_info *type = now.__cxa_exception_type();
        caught[*type == typeid(Refused) ? REFUSED : *type == typeid(Broken) ? BROKEN : RUNTIME]++;
      }
    if (depth > 1 && below(3) == 0) {
      rethrown[kind]++;
      throw;
    }
  };
  try {
    fail((int)below(KINDS), depth);
  } catch (const Refused &) {
    handle(REFUSED);
  } catch (const Broken &) {
    handle(BROKEN);
  } catch (const std::runtime_error &) {
    handle(RUNTIME);
  }
}

int main(int argc, char **argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 100, others = argc > 2 ? std::atoi(argv[2]) : 2;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < others; thread++)
    threads.emplace_back([=] {
      unsigned state = 77 + thread;
      for (int i = 0; i < count; i++)
        attempt(&state, 1);
    });
  for (auto &thread : threads)
    thread.join();
  const char *names[KINDS] = {typeid(Refused).name(), typeid(Broken).name(), typeid(std::runtime_error).name()};
  for (int kind = 0; kind < KINDS; kind++)
    std::printf("%s %ld %ld %ld\n", names[kind], thrown[kind].load(), caught[kind].load(), rethrown[kind].load());
  return 0;
}
