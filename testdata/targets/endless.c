/* A function whose unwind information never ends: the frame of its caller is at what an expression says that jumps back to its beginning. */
#include <sys/sdt.h>

static volatile int sum;

__attribute__((noinline)) int endless(int number) {
  /* DW_CFA_def_cfa_expression, 3 bytes: DW_OP_skip -3 */
  __asm__ volatile(".cfi_remember_state\n.cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff");
  STAP_PROBE1(stacks, hit, number);
  __asm__ volatile(".cfi_restore_state");
  sum += number;
  return sum;
}

__attribute__((noinline)) int caller(int number) {
  return endless(number) + 1;
}

int main(void) {
  return caller(1) + caller(2) == 0;
}
