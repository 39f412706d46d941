/*
 * A provider file with what such files have.
 */
#pragma D depends_on library procfs.d
#define Oid unsigned int
#define bool char
#define	CHAIN Oid

typedef struct conn conn_t;
typedef int32_t status_t;
typedef enum { CLOSED, TIMEOUT = 5, RESET } reason_t;
enum level { LOW = 1, HIGH = -2 };

typedef struct {
	uint32_t fd;
	char *url;
} conninfo_t;

translator conninfo_t <conn_t *c> {
	fd = *(uint32_t *)copyin((uintptr_t)&c->fd, sizeof (uint32_t));
	url = copyinstr((uintptr_t)c->url);
};

provider app {
	probe start();
	probe shutdown(void);
	probe request__start(conn_t *conn, const char *url, char name[16], int);
	probe request-done(conn_t *c, reason_t why, enum level) : (conninfo_t *c, string why, int l);
	probe numbers(unsigned char a, short int b, unsigned long c, long long d, float e, double f, size_t);
	probe own(Oid, CHAIN, bool, status_t, hrtime_t t, string, void (*cb)(int, char), struct tm *);
	probe unknown(mystery_t m, long double x, unsigned char *bytes);
	probe store(mystery_t m, const char *key, int keylen, char *old_value, size_t old_value_length, char *p, float plen);
};

#pragma D attributes Evolving/Evolving/Common provider app provider
provider second { probe only(uintptr_t p, char c, signed char s); };
