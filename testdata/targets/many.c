/* A program with 256 probes, many:p0000 to many:p3333 in digits of base 4. It hits none, and waits for the end of its standard input. */
#include <stdio.h>
#include <sys/sdt.h>

#define P1(n) DTRACE_PROBE(many, n);
#define P4(n) P1(n##0) P1(n##1) P1(n##2) P1(n##3)
#define P16(n) P4(n##0) P4(n##1) P4(n##2) P4(n##3)
#define P64(n) P16(n##0) P16(n##1) P16(n##2) P16(n##3)

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) {
    P64(p0) P64(p1) P64(p2) P64(p3)
  }
  while (getchar() != EOF)
    ;
  return 0;
}
