/* nested_ops N: N times an operation of kind 1 with one of kind 0 inside, each longer than a millisecond. An end has the status, 200 or 500 (each third). */
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>

static void begin(int kind, int id) { STAP_PROBE2(nested_ops, op__begin, kind, id); }
static void end(short status) { STAP_PROBE1(nested_ops, op__end, status); }

int main(int count, char **words) {
  int number = count > 1 ? atoi(words[1]) : 1;
  for (int id = 1; id <= number; id++) {
    begin(1, id);
    begin(0, id);
    usleep(1500);
    end(200);
    usleep(1500);
    end(id % 3 ? 200 : 500);
  }
  return 0;
}
