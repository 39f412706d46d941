/* A stand-in for Node.js with its old provider: the eight probes with their argument shapes (the int, pointer and
 * string arguments of node_provider.d), is-enabled semaphores, and frames with more than 4 KiB between the arguments
 * and the stack pointer. To be built as `node` with gcc -O0, which keeps the arguments in the frame.
 *
 * Commands on standard input, each answered by the lines of its hits and `done`:
 *     gc N         N pairs of gc__start, gc__done
 *     request N    N times the other six
 *     semaphores   prints `semaphores` and the eight counters */
#define SDT_USE_VARIADIC
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <string.h>
#include <sys/sdt.h>

#include "shapes.h"

#define PROBES(each)                                                                       \
  each(gc__start) each(gc__done) each(http__client__request) each(http__client__response)  \
  each(http__server__request) each(http__server__response) each(net__server__connection)   \
  each(net__stream__end)

#define SEMAPHORE(name) __extension__ volatile unsigned short node_##name##_semaphore __attribute__((section(".probes")));
PROBES(SEMAPHORE)

/* The probe only if it is asked for, as Node.js does it; the line always, so that a test sees what was missed. */
#define NODE(name, ...)                         \
  do {                                          \
    if (node_##name##_semaphore)                \
      STAP_PROBEV(node, name, __VA_ARGS__);     \
    FIRED(name, __VA_ARGS__);                   \
  } while (0)

typedef struct { char *url, *method, *forwarded_for; } request_t;
typedef struct { int fd; int port; char *remote; unsigned buffered; } connection_t;

static int isolate;

static void gc(int type, int flags) {
  NODE(gc__start, type, flags, &isolate);
  NODE(gc__done, type, flags, &isolate);
}

static void fill(connection_t *connection, char *remote, int number) {
  sprintf(remote, "::ffff:10.0.0.%d", number % 256);
  *connection = (connection_t){.fd = 18 + number % 100, .port = 51056 + number, .remote = remote, .buffered = 0};
}

static void client(int number) {
  char url[5000], method[64], remote[128];
  request_t request = {url, method, ""};
  connection_t connection;
  fill(&connection, remote, number);
  sprintf(url, "/upstream/%d", number);
  strcpy(method, number % 2 ? "POST" : "GET");
  const char *asked_url = url, *asked_method = method;
  request_t *asked = &request;
  connection_t *over = &connection;
  int port = connection.port, fd = -1 - number;
  NODE(http__client__request, asked, over, remote, port, asked_method, asked_url, fd);
  NODE(http__client__response, over, remote, port, fd);
}

static void server(int number) {
  char method[64], remote[128];
  connection_t connection;
  const char *asked_url, *asked_method = method;
  connection_t *over = &connection;
  int port, fd;
  char url[6000];
  request_t request = {url, method, ""}, *asked = &request;
  fill(&connection, remote, number);
  sprintf(url, "/foo/%d", number);
  strcpy(method, number % 3 ? "GET" : "PUT");
  asked_url = url, port = connection.port, fd = connection.fd;
  NODE(net__server__connection, over, remote, port, fd);
  NODE(http__server__request, asked, over, remote, port, asked_method, asked_url, fd);
  NODE(http__server__response, over, remote, port, fd);
  NODE(net__stream__end, over, remote, port, fd);
}

int main(void) {
  char line[64], word[32];
  setvbuf(stdout, 0, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin)) {
    int count = 0;
    if (sscanf(line, "%31s %d", word, &count) < 1)
      continue;
    for (int i = 0; i < count; i++) {
      if (!strcmp(word, "gc"))
        gc(1 << i % 4, i % 2 ? -i : i);
      else {
        client(i);
        server(i);
      }
    }
    if (!strcmp(word, "semaphores")) {
#define SHOW_SEMAPHORE(name) printf(" %d", node_##name##_semaphore);
      printf("semaphores");
      PROBES(SHOW_SEMAPHORE)
      printf("\n");
    }
    printf("done\n");
  }
  return 0;
}
