/* Bytes with their number beside them. Prints what it hands over: number, then the bytes in hexadecimal. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>

static __attribute__((noinline)) void hand_over(const uint8_t *at, int count, uint16_t half)
{
    DTRACE_PROBE3(bytes, blob, at, count, half);
    printf("%d ", count);
    for (int i = 0; i < count; i++)
        printf("%02x", at[i]);
    printf("\n");
}

int main(void)
{
    static uint8_t bytes[600];
    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 % 256);
    memcpy(bytes, "GET\0/x", 6);
    for (int count = 0; count < 20; count++)
        hand_over(bytes, count, (uint16_t)(count / 2));
    hand_over(bytes, 300, 256);
    hand_over(bytes, -5, 257);
    /* The last bytes of a page behind which nothing is. */
    uint8_t *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memcpy(page + 4092, "edge", 4);
    hand_over(page + 4092, 4, 4);
    hand_over(0, 0, 0);
    return 0;
}
