// A library with a probe, of the provider that an option of the compiler defines.
#include <sys/sdt.h>

void late_work(long number) { DTRACE_PROBE1(PROVIDER, hit, number); }
