/* Hits a probe with strings in buffers on the stack, each argument of the program in the same one. Prints nothing. */
#include <string.h>
#include <sys/sdt.h>

int main(int argc, char **argv)
{
    char method[8], path[64];
    for (int i = 1; i + 1 < argc; i += 2) {
        strncpy(method, argv[i], sizeof method);
        method[sizeof method - 1] = 0;
        strncpy(path, argv[i + 1], sizeof path);
        path[sizeof path - 1] = 0;
        DTRACE_PROBE3(short, request, method, path, i);
    }
    return 0;
}
