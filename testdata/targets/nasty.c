/* Hits probes with values that formats get wrong: extremes of 64 bits, NaN and infinity, strings that are long, empty, not UTF-8, or have quotes and
 * newlines, unreadable memory; spans that recur, cross, stay open, have no begin, or end on another thread.
 *     nasty [MORE]
 * MORE is how many ordinary spans follow. */
#define _GNU_SOURCE
#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sdt.h>

static volatile double number;
static volatile uint64_t id;

__attribute__((noinline)) static void value(int64_t low, uint64_t high, double real, const char *text) {
  number = real;
  STAP_PROBE4(nasty, value, low, high, number, text);
}

__attribute__((noinline)) static void start(uint64_t key, const char *text) { STAP_PROBE2(nasty, work__start, key, text); }
__attribute__((noinline)) static void done(uint64_t key, int status) { STAP_PROBE2(nasty, work__done, key, status); }
__attribute__((noinline)) static void job_start(uint64_t job) { STAP_PROBE1(nasty, job__start, job); }
__attribute__((noinline)) static void job_done(uint64_t job) { STAP_PROBE1(nasty, job__done, job); }

static void recur(int depth) {
  start(depth, "deep \"er\"\n");
  if (depth > 0)
    recur(depth - 1);
  done(depth, -depth);
}

static void *other(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, "o\"th\\er\n\xc3\xa9");
  job_done(UINT64_MAX);
  start(77, "on another thread");
  return 0;
}

int main(int argc, char **argv) {
  static char text[8192];
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "\xf0\x9f\x8e\x89 ", 5);
  value(INT64_MIN, UINT64_MAX, NAN, "a\"b\\c\n\t\r</script>\x1b[2J");
  value(INT64_MAX, 0, INFINITY, "not \xff\xfe UTF-8");
  value(-1, (1ULL << 53) + 1, -INFINITY, "");
  value(-((1LL << 53) + 1), INT64_MAX, DBL_MIN / 3, text);
  value(0, 1ULL << 63, -0.0, (const char *)8);
  value(1, 1, 0.1, 0);
  value(2, 2, DBL_MAX, "gr\xc3\xb6\xc3\x9f" "e \xe2\x80\xae;=1+1");
  done(5, 5); /* no begin */
  recur(3);
  start(12, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  done(12, 0);
  job_start(1);
  start(10, "crosses");
  job_done(1);
  done(10, 0);
  job_start(UINT64_MAX); /* ends on the other thread */
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  pthread_join(thread, 0);
  for (int i = 0, n = argc > 1 ? atoi(argv[1]) : 0; i < n; i++) {
    start(100 + i, "ordinary");
    done(100 + i, i);
  }
  start(11, "stays open");
  return 0;
}
