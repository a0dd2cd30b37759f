/* event.c: an event's text taken apart in one pass, without building anything.
 *
 * Times are decimal microseconds of up to 19 digits (the epoch in older profilers), more than a double holds; they are
 * read as whole nanoseconds. Text is taken as it comes: profilers write control characters and bytes that are no UTF-8
 * into names. */
#include "trace/event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

typedef struct cursor {
    const char *at, *end;
} cursor;

static void blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r' || *c->at == ','))
        c->at++;
}

/* Behind an opening quote: the text up to the closing one. */
static bool string(cursor *c, ft_trace_text *out)
{
    const char *from = c->at;
    while (c->at < c->end && *c->at != '"') c->at += *c->at == '\\' ? 2 : 1;
    if (c->at >= c->end) return false;
    *out = (ft_trace_text){from, (size_t)(c->at - from)};
    c->at++;
    return true;
}

/* Any value; strings without their quotes, the rest as it stands. */
static bool value(cursor *c, ft_trace_text *out)
{
    blanks(c);
    if (c->at >= c->end) return false;
    const char *from = c->at;
    if (*from == '"') {
        c->at++;
        return string(c, out);
    }
    if (*from == '{' || *from == '[') {
        int64_t depth = 0;
        for (; c->at < c->end; c->at++) {
            if (*c->at == '"') {
                ft_trace_text skipped;
                c->at++;
                if (!string(c, &skipped)) return false;
                c->at--;
            } else if (*c->at == '{' || *c->at == '[') {
                depth++;
            } else if ((*c->at == '}' || *c->at == ']') && --depth == 0) {
                c->at++;
                *out = (ft_trace_text){from, (size_t)(c->at - from)};
                return true;
            }
        }
        return false;
    }
    while (c->at < c->end && !strchr(",}] \n\r\t", *c->at)) c->at++;
    *out = (ft_trace_text){from, (size_t)(c->at - from)};
    return c->at > from;
}

/* The next member of an object; false at its end. */
static bool member(cursor *c, ft_trace_text *key, ft_trace_text *held)
{
    blanks(c);
    if (c->at >= c->end || *c->at != '"') return false;
    c->at++;
    if (!string(c, key)) return false;
    blanks(c);
    if (c->at >= c->end || *c->at != ':') return false;
    c->at++;
    return value(c, held);
}

static bool is(ft_trace_text s, const char *word) { return s.length == strlen(word) && !memcmp(s.at, word, s.length); }

static double number(ft_trace_text s)
{
    char copy[48];
    size_t n = s.length < sizeof copy - 1 ? s.length : sizeof copy - 1;
    if (n) memcpy(copy, s.at, n);
    copy[n] = 0;
    double v = strtod(copy, NULL);
    return v > -1e30 && v < 1e30 ? v : 0; /* a NaN fails both */
}

static int64_t whole(ft_trace_text s)
{
    double v;
    int64_t n = 0;
    size_t i = 0;
    bool minus = s.length && s.at[0] == '-';
    for (i = minus; i < s.length && i < 18 && s.at[i] >= '0' && s.at[i] <= '9'; i++) n = 10 * n + (s.at[i] - '0');
    if (i == s.length && i > (size_t)minus) return minus ? -n : n;
    v = number(s);
    return fabs(v) < 0x1p63 ? (int64_t)v : 0;
}

/* Microseconds to nanoseconds. Times beyond any clock are INT64_MAX: counted as a clock that jumped. */
static bool nanoseconds(ft_trace_text s, int64_t *out)
{
    int64_t n = 0;
    size_t i = 0;
    bool minus = s.length && s.at[0] == '-';
    i = minus;
    size_t first = i;
    for (; i < s.length && s.at[i] >= '0' && s.at[i] <= '9'; i++) {
        if (n > INT64_C(9000000000000000) / 10) { /* 285 years */
            *out = INT64_MAX;
            return true;
        }
        n = 10 * n + (s.at[i] - '0');
    }
    if (i == first) return false;
    n *= 1000;
    if (i < s.length && s.at[i] == '.') {
        int64_t unit = 100;
        for (i++; i < s.length && s.at[i] >= '0' && s.at[i] <= '9'; i++, unit /= 10) n += unit * (s.at[i] - '0');
    }
    if (i < s.length) { /* 1.2e5 */
        char copy[48] = "";
        memcpy(copy, s.at, s.length < sizeof copy - 1 ? s.length : sizeof copy - 1);
        double v = strtod(copy, NULL) * 1e3;
        *out = fabs(v) < 0x1p63 ? (int64_t)v : INT64_MAX;
        return true;
    }
    *out = minus ? -n : n;
    return true;
}

/* In place, `s` being part of `text`; \uXXXX outside ASCII becomes '?'. */
static ft_trace_text unescaped(char *text, ft_trace_text s)
{
    if (s.length == 0 || !memchr(s.at, '\\', s.length)) return s;
    char *base = text + (s.at - text), *to = base;
    for (size_t i = 0; i < s.length; i++) {
        char c = base[i];
        if (c == '\\' && i + 1 < s.length) {
            c = base[++i];
            if (c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f') c = ' ';
            if (c == 'u') {
                char digits[5] = "";
                size_t n = s.length - i - 1 < 4 ? s.length - i - 1 : 4;
                memcpy(digits, base + i + 1, n);
                long code = strtol(digits, NULL, 16);
                c = code >= 32 && code < 127 ? (char)code : '?';
                i += n;
            }
        }
        *to++ = c;
    }
    return (ft_trace_text){base, (size_t)(to - base)};
}

static ft_trace_event_kind kind_of(ft_trace_text cat)
{
    static const struct {
        const char *name;
        ft_trace_event_kind kind;
    } kinds[] = {
        {"cpu_op", FT_EVENT_OP},
        {"kernel", FT_EVENT_KERNEL},
        {"cuda_runtime", FT_EVENT_CALL},
        {"cuda_driver", FT_EVENT_CALL},
        {"user_annotation", FT_EVENT_ANNOTATION},
        {"gpu_memcpy", FT_EVENT_MEMCPY},
        {"gpu_memset", FT_EVENT_MEMSET},
        {"python_function", FT_EVENT_PYTHON},
        {"hip_runtime", FT_EVENT_CALL},
        {"hip_driver", FT_EVENT_CALL},
        {"xpu_runtime", FT_EVENT_CALL},
        {"xpu_driver", FT_EVENT_CALL},
        /* PyTorch before 1.11 */
        {"Operator", FT_EVENT_OP},
        {"operator", FT_EVENT_OP},
        {"Kernel", FT_EVENT_KERNEL},
        {"Runtime", FT_EVENT_CALL},
        {"Memcpy", FT_EVENT_MEMCPY},
        {"Memset", FT_EVENT_MEMSET},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is(cat, kinds[i].name)) return kinds[i].kind;
    return FT_EVENT_OTHER;
}

static void triple(ft_trace_text s, int64_t out[3])
{
    cursor c = {s.at, s.at + s.length};
    ft_trace_text v;
    if (c.at < c.end && *c.at == '[') c.at++;
    for (int i = 0; i < 3 && value(&c, &v); i++) {
        out[i] = whole(v);
        if (out[i] < 0) out[i] = 0;
    }
}

static void arguments(ft_trace_text object, ft_trace_event *out)
{
    cursor c = {object.at, object.at + object.length};
    ft_trace_text key, held;
    if (c.at >= c.end || *c.at != '{') return;
    c.at++;
    while (member(&c, &key, &held)) {
        switch (key.length ? key.at[0] : 0) {
        case 'E':
        case 'e':
            if (is(key, "External id") || is(key, "external id")) out->external = whole(held);
            break;
        case 'c':
            if (is(key, "correlation")) out->correlation = whole(held);
            break;
        case 's':
            if (is(key, "stream")) out->stream = whole(held);
            break;
        case 'd':
            if (is(key, "device")) out->device = whole(held);
            if (is(key, "dtype")) out->element_type = held;
            break;
        case 'b':
            if (is(key, "bytes")) out->bytes = number(held);
            if (is(key, "block")) triple(held, out->block);
            break;
        case 'g':
            if (is(key, "grid")) triple(held, out->grid);
            break;
        case 'I':
            if (is(key, "Input Dims") || is(key, "Input dims")) out->dims = held;
            if (is(key, "Input type")) out->types = held;
            if (is(key, "Input Strides")) out->strides = held;
            if (is(key, "In msg nelems")) out->elements = number(held);
            break;
        case 'C':
            if (is(key, "Concrete Inputs")) out->concrete = held;
            if (is(key, "Collective name")) out->collective = held;
            break;
        case 'G':
            if (is(key, "Group size")) out->ranks = whole(held);
            break;
        default: break;
        }
    }
}

bool ft__event_read(char *text, size_t length, ft_trace_event *out)
{
    memset(out, 0, sizeof *out);
    out->stream = out->device = -1;
    out->name.at = out->dims.at = out->types.at = out->strides.at = out->concrete.at = "";
    out->collective.at = out->element_type.at = "";
    cursor c = {text, text + length};
    ft_trace_text key, held, process = {"", 0}, thread = {"", 0};
    bool begun = false, lasts = false, complete = false;
    blanks(&c);
    if (c.at >= c.end || *c.at != '{') return false;
    c.at++;
    while (member(&c, &key, &held)) {
        if (is(key, "ph"))
            complete = is(held, "X");
        else if (is(key, "cat"))
            out->kind = kind_of(held);
        else if (is(key, "name"))
            out->name = held;
        else if (is(key, "ts"))
            begun = nanoseconds(held, &out->start_ns);
        else if (is(key, "dur"))
            lasts = nanoseconds(held, &out->duration_ns);
        else if (is(key, "pid"))
            process = held;
        else if (is(key, "tid"))
            thread = held;
        else if (is(key, "args"))
            arguments(held, out);
    }
    out->timed = begun && lasts && complete;
    out->thread = ft__hash(thread.at, thread.length, ft__hash(process.at, process.length, 7));
    if (out->kind != FT_EVENT_OTHER) out->name = unescaped(text, out->name);
    if (out->bytes < 0) out->bytes = 0;
    return true;
}

ft_trace_text ft__json_member(ft_trace_text object, const char *key)
{
    cursor c = {object.at, object.at + object.length};
    ft_trace_text name, held;
    blanks(&c);
    if (c.at >= c.end || *c.at != '{') return (ft_trace_text){"", 0};
    c.at++;
    while (member(&c, &name, &held))
        if (is(name, key)) return held;
    return (ft_trace_text){"", 0};
}
