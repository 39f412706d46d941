/* Every operand form of x86-64, hand-written, with the values that the registers and the stack hold at the hit.
 * What each line asserts is explained in shapes.h. */
#include "handmade.h"

#include <stdint.h>

uint64_t in_memory[4] = {0x1111111111111111, 0xfedcba9876543210, 0x40091eb851eb851f, 0x3fc00000};
__thread uint32_t thread_local = 99;

#define RAX "movabs $0x11223344556688f9, %rax\n"

HANDMADE(constants, "", "4@$-1 1@$-6 2@$65537 8@$-1 -8@$-9223372036854775808 -4@$4294967295 4@$0x10 -1@$255", "")
HANDMADE(expression, "", "8@$8|$4 4@$3", "")
HANDMADE(parts_of_rax, RAX, "1@%ah -1@%ah 1@%al -1@%al 2@%ax -2@%ax 4@%eax -4@%eax 8@%rax", "")
HANDMADE(high_bytes, "push %rbx\nmov $0xa1b2, %ebx\nmov $0xc3d4, %ecx\nmov $0xe5f6, %edx", "1@%bh 1@%ch -1@%dh 1@%bl", "pop %rbx")
HANDMADE(low_bytes, "push %rbp\nmov $0x1fe, %esi\nmov $0x2fd, %edi\nmov $0x3fc, %ebp", "1@%sil -1@%dil 1@%bpl", "pop %rbp")
HANDMADE(numbered, "push %r12\npush %r15\nmov $-2, %r8\nmov $-3, %r9\nmov $-4, %r10\nmov $-5, %r11\nmov $-6, %r12\nmov $-7, %r15",
         "8@%r8 -1@%r9b 2@%r10w 4@%r11d -8@%r12 -2@%r15w", "pop %r15\npop %r12")
HANDMADE(narrow_in_wide, RAX "mov %rax, %rdi", "1@%edi -1@%rdi 2@%edi -2@%rdi 4@%rdi", "")
HANDMADE(no_size, RAX "push $77", "%rax (%rsp) 0(%rsp) +0(%rsp) $7 %ah", "add $8, %rsp")
HANDMADE(near_stack, "push $-5\npush $0x7fffffff",
         "8@(%rsp) 4@0(%rsp) -8@8(%rsp) -4@8(%rsp) 4@8(%rsp) 2@8(%rsp) -1@8(%rsp) 8@6(%rsp) 1@2+3-5(%rsp)", "add $16, %rsp")
HANDMADE(far_stack, "push $-1234\n" TAKE_PAGES_64(5) "movq $4321, 4200(%rsp)", "-4@20480(%rsp) 8@4200(%rsp) -2@4200(%rsp)",
         "add $20488, %rsp")
HANDMADE(too_far_stack, TAKE_PAGES_64(20) "mov $5, %eax\nmovq $1, 70000(%rsp)\nmovq $6, 4200(%rsp)", "8@70000(%rsp) 4@%eax 8@4200(%rsp)",
         "add $81920, %rsp")
/* The page of the stack pointer was never touched: the kernel copies nothing. */
HANDMADE(untouched_stack, "mov $5, %eax\nsub $2000000, %rsp", "8@8(%rsp) 4@%eax", "add $2000000, %rsp")
HANDMADE(frame, "push %rbp\nmov %rsp, %rbp\nsub $32, %rsp\nmovq $-8, -8(%rbp)\nmovl $16, -16(%rbp)\nmovb $200, -17(%rbp)",
         "-8@-8(%rbp) 4@-16(%rbp) 1@-17(%rbp) -1@-17(%rbp)", "leave")
HANDMADE(far_frame, "push %rbp\nmov %rsp, %rbp\n" TAKE_PAGES_64(1) "sub $904, %rsp\nmovq $-77, -8(%rbp)\nmovq $88, -4992(%rbp)",
         "-8@-8(%rbp) 8@-4992(%rbp)", "leave")
HANDMADE(beyond_frame, "push %rbp\nmov %rsp, %rbp\n" TAKE_PAGES_64(2) "sub $808, %rsp\nmovq $-77, -8(%rbp)\nmovq $88, -8992(%rbp)",
         "-8@-8(%rbp) 8@-8992(%rbp)", "leave")
HANDMADE(red_zone, "movq $1, -8(%rsp)\nmovl $2, -128(%rsp)\nmov $3, %eax", "8@-8(%rsp) 4@-128(%rsp) 4@%eax", "")
HANDMADE(red_zone_frame, "push %rbp\nmov %rsp, %rbp\nmovl $2, -4(%rbp)\nmovl $3, -8(%rbp)", "4@-4(%rbp) 8@-8(%rbp) 4@$9", "pop %rbp")
HANDMADE(indexed_stack, "sub $4096, %rsp\nmov $5, %eax\nmovl $-50, 20(%rsp)\nmovw $-51, 1005(%rsp)\nmovq $52, 4040(%rsp)",
         "-4@(%rsp,%rax,4) -2@1000(%rsp,%rax) 8@4000(%rsp,%rax,8)", "add $4096, %rsp")
HANDMADE(indexed_frame, "push %rbp\nmov %rsp, %rbp\nsub $64, %rsp\nmov $-2, %rax\nmovq $53, -16(%rbp)\nmovl $-54, -40(%rbp)",
         "8@(%rbp,%rax,8) -4@-24(%rbp,%rax,8)", "leave")
HANDMADE(pointer_to_stack, "push $61\npush $62\nmov %rsp, %rcx\nmov $1, %edx", "8@8(%rcx) 4@(%rcx) 8@(%rcx,%rdx,8)", "add $16, %rsp")
HANDMADE(pointer, "lea in_memory(%rip), %rcx\nmov $1, %edx", "8@(%rcx) 4@8(%rcx) -2@(%rcx,%rdx,8) 8f@16(%rcx) 8@%rdx", "")
HANDMADE(scaled_only, "lea in_memory(%rip), %rcx\nshr $3, %rcx", "8@(,%rcx,8) 1@$1", "")
HANDMADE(symbols, "", "8@in_memory(%rip) 8@8+in_memory(%rip) 8@in_memory+8(%rip) 4f@in_memory+24(%rip) 8@in_memory@GOTPCREL(%rip) 1@$1", "")
HANDMADE(unknown_symbol, "mov $6, %eax", "8@nowhere(%rip) 4@.LC0(%rip) 4@%eax", "")
HANDMADE(segments, "", "8@%fs:0 8@%fs:0x0 4@%fs:thread_local@tpoff 1@$1", "")
/* The base of these segments is 0. */
HANDMADE(flat_segments, "push $-5\nmov $1, %eax", "-8@%ss:(%rsp) -4@%ds:-8(%rsp,%rax,8) 8@%cs:8+in_memory(%rip) 1@$1", "add $8, %rsp")
HANDMADE(segment_register, "xor %eax, %eax\nmov $8, %edx", "8@%fs:(%rax) 8@%fs:0x0(%rax) 8@%rdx", "")
HANDMADE(float_registers, "mov $0x40091eb851eb851f, %rax\nmov $0x3fc00000, %edx", "8f@%rax 4f@%edx 4f@%rdx", "")
HANDMADE(float_stack, "sub $32, %rsp\nmovabs $0xc0091eb851eb851f, %rax\nmov %rax, (%rsp)\nmovl $0x3dcccccd, 8(%rsp)\nmovl $0x7f800000, 12(%rsp)\nmovl $1, 16(%rsp)",
         "8f@(%rsp) 4f@8(%rsp) 4f@16(%rsp) 4f@12(%rsp)", "add $32, %rsp")
HANDMADE(vector_registers, "movabs $0x40091eb851eb851f, %rax\nmovq %rax, %xmm0\nmovq %rax, %xmm15\nmov $8, %edx",
         "8f@%xmm0 4f@%xmm15 8@%xmm1 4@%edx", "")
HANDMADE(odd_registers, "mov $8, %edx", "10f@%st 8@%mm0 8@%cr3 8@%k1 4@%edx", "")
HANDMADE(unparsed, "mov $8, %edx", "4@%edx -4@%nonsense 4@%edx 4@(%rsp,%rax,3) 1@&* 4@%edx", "")
HANDMADE(sixteen_bytes, RAX, "-16@%rax 16@8(%rsp) 8@%rax", "")
HANDMADE(every_register,
         "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\nmov $1, %eax\nmov $2, %ebx\nmov $3, %ecx\nmov $4, %edx\n"
         "mov $5, %esi\nmov $6, %edi\nmov $7, %ebp\nmov $9, %r9d\nmov $10, %r10d\nmov $13, %r13d\nmov $14, %r14d\nmov $15, %r15d",
         "8@%rax 8@%rbx 8@%rcx 8@%rdx 8@%rsi 8@%rdi 8@%rbp 8@%r9 8@%r10 8@%r13 8@%r14 8@%r15",
         "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx")
uint64_t stack_pointer;
HANDMADE(stack_pointer_itself, "mov %rsp, stack_pointer(%rip)", "8@%rsp 4@%esp 2@%sp 1@%spl", "")

__attribute__((naked, noinline)) static void odd_names(void) {
  __asm__(NOTE("odd.provider-x", "na.me-with__all", "4@$42") NOTE("shapes", "dashed-name", "4@$43") "ret\n");
}

static uint64_t thread_pointer(void) {
  uint64_t value;
  __asm__("mov %%fs:0, %0" : "=r"(value));
  return value;
}

static void registers(void) {
  HIT(constants, "=4294967295 =250 =1 =18446744073709551615 =-9223372036854775808 =-1 =16 =-1");
  HIT(expression, "=12 =3");
  HIT(parts_of_rax, "=136 =-120 =249 =-7 =35065 =-30471 =1432783097 =1432783097 =1234605616436513017");
  HIT(high_bytes, "=161 =195 =-27 =178");
  HIT(low_bytes, "=254 =-3 =252");
  HIT(numbered, "=18446744073709551614 =-3 =65532 =4294967291 =-6 =-7");
  HIT(narrow_in_wide, "=249 =-7 =35065 =-30471 =1432783097");
  HIT(no_size, "=1234605616436513017 =77 =77 =77 =7 =136");
  HIT(every_register, "=1 =2 =3 =4 =5 =6 =7 =9 =10 =13 =14 =15");
  stack_pointer_itself();
  printf("fire stack_pointer_itself =%llu =%u =%u =%u\n", (unsigned long long)stack_pointer, (uint32_t)stack_pointer,
         (uint16_t)stack_pointer, (uint8_t)stack_pointer);
}

static void stack(void) {
  HIT(near_stack, "=2147483647 =2147483647 =-5 =-5 =4294967291 =65531 =-5 =18446744073709223936 =255");
  HIT(far_stack, "=-1234 =4321 =4321");
  HIT(too_far_stack, "!beyond|1 =5 =6");
  HIT(untouched_stack, "!beyond|0 =5");
  HIT(frame, "=-8 =16 =200 =-56");
  HIT(far_frame, "=-77 =88");
  HIT(beyond_frame, "!beyond|-77 =88");
  HIT(red_zone, "!red_zone|1 !red_zone|2 =3");
  HIT(red_zone_frame, "!red_zone|2 !red_zone|8589934595 =9");
  HIT(indexed_stack, "=-50 =-51 =52");
  HIT(indexed_frame, "=53 =-54");
  HIT(pointer_to_stack, "?61 ?62 ?61");
}

static void memory(void) {
  HIT(pointer, "?1229782938247303441 ?1985229328 ?12816 ?f%.17g =1", 3.14);
  HIT(scaled_only, "?1229782938247303441 =1");
  HIT(symbols, "?1229782938247303441 ?18364758544493064720 ?18364758544493064720 ?f%.17g ?%llu =1", 1.5,
      (unsigned long long)(uintptr_t)in_memory);
  HIT(unknown_symbol, "! ! =6");
  HIT(segments, "?%llu ?%llu ?99 =1", (unsigned long long)thread_pointer(), (unsigned long long)thread_pointer());
  HIT(flat_segments, "=-5 =-5 ?18364758544493064720 =1");
  HIT(segment_register, "?%llu ?%llu =8", (unsigned long long)thread_pointer(), (unsigned long long)thread_pointer());
}

static void odd(void) {
  HIT(float_registers, "=f%.17g =f%.17g =f%.17g", 3.14, 1.5, 1.5);
  HIT(float_stack, "=f%.17g =f%.17g =f%.17g ?f%.17g", -3.14, (double)0.1f, 0x1p-149, (double)__builtin_inff());
  HIT(vector_registers, "!xmm0 !xmm15 !xmm1 =8");
  HIT(odd_registers, "! ! ! ! =8");
  HIT(unparsed, "=8 ! =8 ! ! =8");
  HIT(sixteen_bytes, "! ! =1234605616436513017");
  odd_names();
  printf("fire na.me-with__all =42\nfire dashed-name =43\n");
}

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  // The stack grows this far now, and the pages between stay untouched.
  *((volatile char *)__builtin_frame_address(0) - 4000000) = 1;
  thread_local = 99;
  registers();
  stack();
  memory();
  odd();
  return 0;
}
