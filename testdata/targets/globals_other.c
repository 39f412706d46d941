/* What globals.c only declares. */
int level = -7;
const char *last;

void serve(const char *text)
{
    last = text;
    level--;
}
