/* Hits with pointers of which no note says what they point to: guesses:number with an aligned 33, guesses:text with longer strings,
 * then with a short one. Prints what each hit passed. */
#include <stdio.h>
#include <sys/sdt.h>

static struct {
  int number;
  _Alignas(8) char texts[4][8];
} passed = {33, {"/index", "/login", "/logout", "GET"}};

int main(void) {
  void *volatile pointer = &passed.number;
  STAP_PROBE1(guesses, number, pointer);
  printf("%lu\n", (unsigned long)pointer);
  for (int i = 0; i < 4; i++) {
    pointer = passed.texts[i];
    STAP_PROBE1(guesses, text, pointer);
    printf("%lu\n", (unsigned long)pointer);
  }
  return 0;
}
