/* several_numbers.c: "--gpus 1:8", "-b 1,2,4": what was meant is a sweep, said as the command would take it. */
#include "several_numbers.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "terminal.h"

enum { MOST = 64 };

typedef struct several {
    double x[MOST];
    char text[MOST][24]; /* as they were typed */
    size_t count;
    bool range; /* two ends; a list otherwise */
    char step[25];
} several;

static bool add(several *s, const char *at, size_t length)
{
    if (s->count == MOST || length == 0 || length >= sizeof *s->text) return false;
    if (length > 1 && at[0] == '0' && at[1] != '.') return false; /* "1,02" is one number in half of Europe */
    snprintf(s->text[s->count], sizeof *s->text, "%.*s", (int)length, at);
    return ft__number_parse(s->text[s->count], &s->x[s->count]) && s->x[s->count++] >= 0;
}

/* "1:8", "1:8:x2", "1..8", "1-8"; an exponent's sign is none between ends. */
static bool read_range(const char *text, several *s)
{
    const char *marks[] = {"..", ":", "-"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        const char *mark = strstr(text, marks[m]), *to = mark ? mark + strlen(marks[m]) : NULL;
        if (!mark) continue;
        size_t length = m == 1 ? strcspn(to, ":") : strlen(to);
        s->count = 0;
        s->range = true;
        if (!add(s, text, (size_t)(mark - text)) || !add(s, to, length) || s->x[1] <= s->x[0]) return false;
        if (!to[length]) return true;
        double step;
        const char *typed = to + length + 1;
        if (!ft__number_parse(typed + (*typed == 'x'), &step) || step <= (*typed == 'x' ? 1 : 0)) return false;
        return snprintf(s->step, sizeof s->step, ":%s", typed) < (int)sizeof s->step;
    }
    return false;
}

/* "1,2,4", "1 2 4", "[1, 2, 4]". */
static bool read_list(const char *text, several *s)
{
    text += strspn(text, "[ ");
    s->count = 0;
    s->range = false;
    for (size_t length; *text; text += length + strspn(text + length, ", ]")) {
        length = strcspn(text, ", ]");
        if (!add(s, text, length)) return false;
    }
    return s->count > 1;
}

/* The step that a list has, if it has one: a whole factor before a difference. */
static void find_step(several *s)
{
    bool adds = true, multiplies = s->x[0] > 0;
    const double by = s->x[1] - s->x[0], times = multiplies ? s->x[1] / s->x[0] : 0;
    for (size_t i = 1; i < s->count; i++) {
        adds = adds && s->x[i] - s->x[i - 1] == by;
        multiplies = multiplies && s->x[i] == s->x[i - 1] * times;
    }
    if (adds && by > 0 && by != 1) snprintf(s->step, sizeof s->step, ":%.6g", by);
    if (multiplies && times >= 2 && times <= 1e6 && times == (double)(long)times && !(adds && by == 1))
        snprintf(s->step, sizeof s->step, ":x%.6g", times);
}

static bool power_of_two(double x)
{
    while (x > 1) x /= 2;
    return x == 1;
}

/* Does the command sweep over it? */
static bool swept(const cli_command *command, const cli_option *o)
{
    return cli_options[OPT_SWEEP].commands & command->bit && (o->kind == CLI_WHOLE || o->kind == CLI_REAL);
}

/* How the command that asks over a range of it is called; NULL: none does. */
static const char *asks_for_ranges(const cli_option *o)
{
    return o->key && !strcmp(o->key->key, "gpus") ? "foretell choose MODEL --tokens N --gpus " : NULL;
}

int cli_several_numbers(const cli_command *command, cli_option_id option, const char *flag, const char *value)
{
    const cli_option *o = &cli_options[option];
    several s = {0};
    if (!read_range(value, &s) && !read_list(value, &s)) return 0;
    if (o->kind == CLI_REAL && s.count == 2 && !s.range && !strchr(value, ' ')) return 0; /* "0,5" may be a half */
    const char *other = asks_for_ranges(o);
    char name[64];
    if (o->letter)
        snprintf(name, sizeof name, "%c", o->letter);
    else
        snprintf(name, sizeof name, "%s", o->name);
    if (!s.range) find_step(&s);
    double least = s.x[0], most = s.x[s.count - 1];
    /* Ranks divide layers and heads, which three and five seldom do; a wide range is one of powers. */
    const bool doubles = power_of_two(least) && power_of_two(most) && (o->group == CLI_PARALLEL || most / least >= 16);
    if (s.range && !*s.step && doubles) strcpy(s.step, ":x2");
    const char *from = s.text[0], *to = s.text[s.count - 1];
    if (least >= most || (!swept(command, o) && !other))
        return cli_usage(command, "%s takes one number, not \"%.60s\"", flag, value);
    if (!swept(command, o))
        return cli_usage(command, "%s takes one number, not \"%.60s\"; %s%s:%s tries several", flag, value, other, from,
                         to);
    return cli_usage(command, "%s takes one number, not \"%.60s\"; over several: --sweep %s=%s:%s%s", flag, value, name,
                     from, to, s.step);
}
