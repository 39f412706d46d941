/* The operand forms of i386, hand-written, for a program at a fixed address (-no-pie). What each line asserts is explained in shapes.h. */
#include "handmade.h"

#include <stdint.h>

uint32_t in_memory[4] = {0x11111111, 0xfedcba98, 0x51eb851f, 0x40091eb8};
__thread uint32_t thread_local = 99;

HANDMADE(constants, "", "4@$-1 1@$-6 2@$65537 -8@$-9000000000 -4@$4294967295 8@$18446744073709551615", "")
HANDMADE(parts_of_eax, "mov $0x556688f9, %eax", "1@%ah -1@%ah 1@%al -1@%al 2@%ax -2@%ax 4@%eax -4@%eax", "")
HANDMADE(high_bytes, "push %ebx\nmov $0xa1b2, %ebx\nmov $0xc3d4, %ecx\nmov $0xe5f6, %edx", "1@%bh 1@%ch -1@%dh 1@%bl", "pop %ebx")
HANDMADE(narrow_in_wide, "push %edi\npush %ebp\nmov $-1, %edi\nmov $0x3fc80, %ebp", "1@%edi -1@%edi 2@%edi -2@%edi -1@%ebp 2@%ebp",
         "pop %ebp\npop %edi")
HANDMADE(no_size, "mov $-7, %eax\npush $-77", "%eax (%esp) 0(%esp) $7 %ah", "add $4, %esp")
HANDMADE(pair, "push %esi\nmov $0x89abcdef, %esi\nmov $3, %eax", "8@%esi -8@%esi 8f@%esi 4@%eax", "pop %esi")
HANDMADE(near_stack, "push $0x01020304\npush $-5", "-4@(%esp) 4@0(%esp) 8@(%esp) -8@(%esp) 2@4(%esp) -1@1(%esp) 4@2(%esp)", "add $8, %esp")
HANDMADE(far_stack, "push $-1234\n" TAKE_PAGES_32(5) "movl $4321, 4200(%esp)", "-4@20480(%esp) 4@4200(%esp)", "add $20484, %esp")
HANDMADE(frame, "push %ebp\nmov %esp, %ebp\n" TAKE_PAGES_32(1) "sub $904, %esp\nmovl $-8, -8(%ebp)\nmovl $-1, -4(%ebp)\nmovb $200, -4992(%ebp)",
         "-4@-8(%ebp) -8@-8(%ebp) 1@-4992(%ebp)", "leave")
HANDMADE(below_stack, "movl $1, -8(%esp)\nmov $3, %eax", "4@-8(%esp) 4@%eax", "")
HANDMADE(indexed_stack, "sub $256, %esp\nmov $5, %eax\nmovl $-50, 20(%esp)\nmovw $-51, 105(%esp)", "-4@(%esp,%eax,4) -2@100(%esp,%eax)",
         "add $256, %esp")
HANDMADE(negative_index, "push %ebp\nmov %esp, %ebp\nsub $64, %esp\nmov $-2, %eax\nmovl $53, -8(%ebp)", "4@(%ebp,%eax,4)", "leave")
HANDMADE(pointer, "mov $in_memory, %ecx\nmov $1, %edx", "4@(%ecx,%edx,4) 4@%edx", "")
HANDMADE(symbols, "push %ebx\nmov $_GLOBAL_OFFSET_TABLE_, %ebx\nmov $4, %eax", "4@in_memory 4@in_memory+4 4@4+in_memory@GOTOFF(%ebx) 4@nowhere 4@%eax", "pop %ebx")
HANDMADE(segments, "xor %eax, %eax", "4@%gs:0 4@%gs:(%eax) 4@%gs:thread_local@ntpoff 1@$1", "")
HANDMADE(floats, "sub $16, %esp\nmovl $0x51eb851f, (%esp)\nmovl $0xc0091eb8, 4(%esp)\nmov $0x3fc00000, %edx", "8f@(%esp) 4f@%edx 8f@%xmm0 10f@%st",
         "add $16, %esp")
uint32_t stack_pointer;

HANDMADE(stack_pointer_itself, "mov %esp, stack_pointer", "4@%esp 2@%sp", "")

static uint32_t thread_pointer(void) {
  uint32_t value;
  __asm__("mov %%gs:0, %0" : "=r"(value));
  return value;
}

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  thread_local = 99;
  HIT(constants, "=4294967295 =250 =1 =-9000000000 =-1 =18446744073709551615");
  HIT(parts_of_eax, "=136 =-120 =249 =-7 =35065 =-30471 =1432783097 =1432783097");
  HIT(high_bytes, "=161 =195 =-27 =178");
  HIT(narrow_in_wide, "=255 =-1 =65535 =-1 =-128 =64640");
  HIT(no_size, "=4294967289 =4294967219 =4294967219 =7 =255");
  HIT(pair, "!lower_0x89abcdef !lower_0x89abcdef !lower_0x89abcdef =3");
  HIT(near_stack, "=-5 =4294967291 =72623864001069051 =72623864001069051 =772 =-1 =50659327");
  HIT(far_stack, "=-1234 =4321");
  HIT(frame, "=-8 =-8 =200");
  HIT(below_stack, "!not_captured|1 =3");
  HIT(indexed_stack, "=-50 =-51");
  HIT(negative_index, "=53");
  HIT(pointer, "?4275878552 =1");
  HIT(symbols, "?286331153 ?4275878552 ?4275878552 ! =4");
  HIT(segments, "?%u ?%u ?99 =1", thread_pointer(), thread_pointer());
  HIT(floats, "=f%.17g =f%.17g !xmm0 !", -3.14, 1.5);
  stack_pointer_itself();
  printf("fire stack_pointer_itself =%u =%u\n", stack_pointer, stack_pointer & 0xffff);
  return 0;
}
