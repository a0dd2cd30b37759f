/* figure.c: numbers in running text, and the units of rates. */
#include "comm/figure.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

double ft__figure_unit(const char *s, size_t *length, bool *size)
{
    const char *at = s;
    while (*at == ' ' || *at == '-') at++;
    double scale = *at == 'T' || *at == 't' ? 1000 : *at == 'G' || *at == 'g' ? 1 : *at == 'M' || *at == 'm' ? 1e-3 : 0;
    if (scale <= 0) return 0;
    at++;
    double bits = 1;
    if (!strncmp(at, "iga", 3) || !strncmp(at, "ega", 3) || !strncmp(at, "era", 3)) at += 3; /* gigabit */
    if ((*at == 'b' || *at == 'B') && !strncmp(at + 1, "yte", 3))
        bits = 8, at += 4, at += *at == 's';
    else if (*at == 'B')
        bits = 8, at++;
    else if (*at == 'i' && at[1] == 'B')
        bits = 8 * (0x1p30 / 1e9), at += 2;
    else if (*at == 'b') {
        at++;
        if (*at == 'E' || *at == 'e') { /* GbE is a kind as well: leave it to be read as a word */
            *length = (size_t)(at - s) - 2;
            return scale;
        }
        if (!strncmp(at, "it", 2)) at += 2;
        if (*at == 's' && at[1] != '/') at++;
    }
    *size = bits > 1 && strncmp(at, "ps", 2) != 0 && strncmp(at, "/s", 2) != 0 && strncmp(at, " per s", 6) != 0;
    if (!strncmp(at, "ps", 2))
        at += 2;
    else if (!strncmp(at, "/s", 2))
        at += 2, at += !strncmp(at, "ec", 2) ? 2 : 0;
    if (isalnum((unsigned char)*at)) return 0;
    *length = (size_t)(at - s);
    return bits * scale;
}

static bool digit(char c) { return isdigit((unsigned char)c) != 0; }

bool ft__figure_negative(const char *s, size_t at)
{
    if (at >= 3 && !strncmp(s + at - 3, "\xe2\x88\x92", 3)) return true;
    return at >= 1 && s[at - 1] == '-' && (at < 2 || !isalnum((unsigned char)s[at - 2]));
}

static bool thousands(const char *s)
{
    return s[0] == ',' && digit(s[1]) && digit(s[2]) && digit(s[3]) && !digit(s[4]);
}

size_t ft__figure_number(const char *s, double *value)
{
    char plain[FT_LONGEST_TEXT + 1];
    size_t n = 0, kept = 0;
    while (digit(s[n]) || (s[n] == '.' && digit(s[n + 1])) || thousands(s + n)) {
        if (s[n] != ',') plain[kept++] = s[n];
        n++;
    }
    size_t sign = s[n] && (s[n + 1] == '-' || s[n + 1] == '+') ? 1 : 0;
    if ((s[n] == 'e' || s[n] == 'E') && digit(s[n + 1 + sign])) {
        plain[kept++] = s[n++];
        while (digit(s[n]) || ((s[n] == '-' || s[n] == '+') && sign))
            sign = digit(s[n]) ? sign : 0, plain[kept++] = s[n++];
    }
    plain[kept] = 0;
    *value = NAN; /* "1.2.3", "1e999" */
    ft__number_parse(plain, value);
    return n;
}
