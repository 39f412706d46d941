// Throws and catches exceptions of five types; prints the mangled and the readable name of each, with a tab between.
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

namespace shop {
template <typename T> struct Failure {
  T what;
};
} // namespace shop

namespace {
// Of a type that no other file can name, the name in the type_info begins with an asterisk.
struct Hidden {};
} // namespace

template <typename T> [[gnu::noinline]] static void thrown(const T &what) {
  char *name = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, nullptr);
  // name() passes over the asterisk.
  auto &type = typeid(T);
  std::printf("%s\t%s\n", reinterpret_cast<char *const *>(&type)[1], name);
  std::free(name);
  try {
    throw what;
  } catch (const T &) {
  }
}

int main() {
  thrown(std::runtime_error("x"));
  thrown(shop::Failure<std::vector<long>>{{1}});
  thrown(shop::Failure<const char *>{"x"});
  thrown(7);
  thrown(Hidden{});
}
