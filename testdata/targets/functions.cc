/* Probes in functions of a namespace, of a template and in an inlined function. */
#include <cstdio>
#include <cstdlib>
#include <sys/sdt.h>

namespace shop {

template <typename T>
__attribute__((noinline)) T twice(T value)
{
    STAP_PROBE1(functions, twice, value);
    return value * 2;
}

static inline __attribute__((always_inline)) void sell(int count)
{
    STAP_PROBE1(functions, sold, count);
}

struct Till {
    __attribute__((noinline)) int close(int sum) const;
};

int Till::close(int sum) const
{
    sell(sum);
    STAP_PROBE2(functions, closed, sum, this);
    return sum + 1;
}

} // namespace shop

int main(int argc, char **)
{
    shop::Till till;
    int sum = till.close(argc);
    printf("%d %ld\n", shop::twice(sum), shop::twice(long(sum)));
    return 0;
}
