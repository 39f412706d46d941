/* Passes addresses of variables, of which some are strings. Prints nothing. */
#include <pthread.h>
#include <sys/sdt.h>

static pthread_mutex_t locks[2];
static struct { char name[16]; int fd; } named;
static struct { int fd; char name[16]; } opened;
static struct { char method[8]; char path[64]; } request;

int main(void)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *pointer = &own;
    char text[16] = "text";
    DTRACE_PROBE3(held, lock, &locks[0], &locks[1], pointer);
    pthread_mutex_lock(pointer);
    DTRACE_PROBE3(held, object, &named, &opened, &named.fd);
    DTRACE_PROBE4(held, string, text, opened.name, request.method, request.path);
    pthread_mutex_unlock(pointer);
    return text[0] == named.name[0];
}
