/* slices.c: from bytes to the text of one event. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "trace/slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unzip.h"

enum { BUFFER_BYTES = 1 << 16, EVENT_BYTES = 8 << 20, HEADER_BYTES = 256 << 10, KEY_BYTES = 48 };

typedef enum place { BEFORE, IN_HEADER, IN_EVENTS, DONE } place;

struct ft_slices {
    ft_unzip *file;
    const unsigned char *memory; /* instead of a file */
    size_t memory_left;
    char *path;
    unsigned char *buffer;
    size_t at, end;
    bool ended, bare; /* bare: the file is the array itself */
    place place;
    ft_text event, devices, distributed;
    uint64_t bytes, skipped, events;
    char broken[120];
};

/* -- bytes ------------------------------------------------------------------------------------- */

static void fill(ft_slices *s)
{
    s->at = s->end = 0;
    if (s->ended) return;
    if (s->memory) {
        size_t n = s->memory_left < BUFFER_BYTES ? s->memory_left : BUFFER_BYTES;
        if (n) memcpy(s->buffer, s->memory, n);
        s->memory += n;
        s->memory_left -= n;
        s->end = n;
        s->ended = n == 0;
    } else {
        s->end = ft__unzip_read(s->file, s->buffer, BUFFER_BYTES);
        s->ended = s->end == 0;
        if (s->ended) snprintf(s->broken, sizeof s->broken, "%s", ft__unzip_broken(s->file));
    }
    s->bytes += s->end;
}

static int peek(ft_slices *s)
{
    if (s->at == s->end) fill(s);
    return s->at < s->end ? s->buffer[s->at] : -1;
}

static int skip_blanks(ft_slices *s)
{
    int c;
    while ((c = peek(s)) == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',') s->at++;
    return c;
}

static void cut_off(ft_slices *s)
{
    if (!s->broken[0]) snprintf(s->broken, sizeof s->broken, "the file ends in the middle of the JSON");
    s->place = DONE;
}

/* -- values ------------------------------------------------------------------------------------ */

/* Takes one value of any depth from the stream; its text goes to `into` as long as it stays below `most` bytes. False:
 * the file ended in it. */
static bool take_value(ft_slices *s, ft_text *into, size_t most, bool *kept)
{
    int depth = 0, c = skip_blanks(s);
    bool quoted = false, escaped = false;
    *kept = true;
    if (into) ft__text_clear(into);
    bool nested = c == '{' || c == '[', text = c == '"';
    for (;;) {
        if (peek(s) < 0) return false;
        const unsigned char *from = s->buffer + s->at, *p = from, *end = s->buffer + s->end;
        bool over = false;
        for (; p < end && !over; p++) {
            if (quoted) {
                if (escaped)
                    escaped = false;
                else if (*p == '\\')
                    escaped = true;
                else if (*p == '"')
                    quoted = false, over = text;
            } else if (*p == '"') {
                quoted = true;
            } else if (*p == '{' || *p == '[') {
                depth++;
            } else if (*p == '}' || *p == ']') {
                if (!nested) { /* the end of what holds a bare number */
                    over = true;
                    p--;
                } else if (--depth == 0) {
                    over = true;
                }
            } else if (!nested && !text && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
                over = true;
            }
        }
        size_t n = (size_t)(p - from);
        if (into && *kept && into->length + n <= most)
            ft__text_add_n(into, (const char *)from, n);
        else
            *kept = !into;
        s->at += n;
        if (over) return true;
    }
}

/* A key up to its colon; longer ones are cut. */
static bool take_key(ft_slices *s, char key[KEY_BYTES])
{
    size_t n = 0;
    bool escaped = false;
    s->at++;
    for (int c; (c = peek(s)) >= 0; s->at++) {
        if (!escaped && c == '"') break;
        escaped = !escaped && c == '\\';
        if (n + 1 < KEY_BYTES) key[n++] = (char)c;
    }
    key[n] = 0;
    if (peek(s) != '"') return false;
    s->at++;
    if (skip_blanks(s) != ':') return false;
    s->at++;
    return true;
}

/* -- the file ---------------------------------------------------------------------------------- */

static ft_status no_trace(const ft_slices *s, ft_error *err)
{
    if (s->broken[0] && s->bytes == 0)
        return ft__fail_at(err, FT_E_FORMAT, s->path, 0, 0, "not a profiler trace: %s", s->broken);
    return ft__fail_at(err, FT_E_FORMAT, s->path, 0, 0,
                       "not a profiler trace; expected JSON with \"traceEvents\", as torch.profiler's "
                       "export_chrome_trace writes it, plain or gzipped");
}

/* Walks the object's keys to "traceEvents"; what stands before and behind it is kept where it is wanted. */
static ft_status header(ft_slices *s, ft_error *err)
{
    for (;;) {
        int c = skip_blanks(s);
        char key[KEY_BYTES];
        bool kept;
        if (c == '}') {
            s->place = DONE;
            return s->events || s->bare ? FT_OK : no_trace(s, err);
        }
        if (c != '"' || !take_key(s, key)) {
            if (!s->events && c >= 0) return no_trace(s, err);
            if (!s->events && s->bytes < 64) return no_trace(s, err);
            cut_off(s);
            return FT_OK;
        }
        if (!strcmp(key, "traceEvents") && skip_blanks(s) == '[') {
            s->at++;
            s->place = IN_EVENTS;
            s->bare = true; /* an array was found, if an empty one */
            return FT_OK;
        }
        ft_text *into = !strcmp(key, "deviceProperties")  ? &s->devices
                        : !strcmp(key, "distributedInfo") ? &s->distributed
                                                          : NULL;
        if (!take_value(s, into, HEADER_BYTES, &kept)) {
            cut_off(s);
            return FT_OK;
        }
        if (into && !kept) ft__text_clear(into);
    }
}

ft_status ft__slices_next(ft_slices *s, char **text, size_t *length, bool *more, ft_error *err)
{
    *more = false;
    if (s->place == BEFORE) {
        int c = skip_blanks(s);
        if (c == 0xEF) { /* a byte-order mark */
            s->at += s->end - s->at < 3 ? s->end - s->at : 3;
            c = skip_blanks(s);
        }
        if (c != '{' && c != '[') return no_trace(s, err);
        s->at++;
        s->bare = c == '[';
        s->place = c == '[' ? IN_EVENTS : IN_HEADER;
    }
    for (;;) {
        if (s->place == IN_HEADER) FT_TRY(header(s, err));
        if (s->place == DONE) {
            if (!s->bare) return no_trace(s, err);
            if (!s->broken[0]) fill(s); /* a checksum stands behind the last byte */
            return FT_OK;
        }
        if (s->place != IN_EVENTS) continue;
        int c = skip_blanks(s);
        if (c < 0) {
            /* Chrome's own form may lack the closing bracket; PyTorch's may not. */
            cut_off(s);
            continue;
        }
        if (c == ']') {
            s->at++;
            s->place = IN_HEADER; /* for a bare array this finds the end of the file */
            if (peek(s) < 0 || skip_blanks(s) < 0) s->place = DONE;
            continue;
        }
        bool kept;
        if (c == '}' || c == ':') { /* no value begins so */
            cut_off(s);
            snprintf(s->broken, sizeof s->broken, "the JSON is malformed after event %llu",
                     (unsigned long long)s->events);
            continue;
        }
        if (!take_value(s, &s->event, EVENT_BYTES, &kept)) {
            cut_off(s);
            continue;
        }
        if (s->event.failed) return ft__fail(err, FT_E_MEMORY, "out of memory while reading '%s'", s->path);
        s->events++;
        if (!kept || c != '{') {
            s->skipped++;
            continue;
        }
        *text = s->event.at;
        *length = s->event.length;
        *more = true;
        return FT_OK;
    }
}

/* -- opening and closing ----------------------------------------------------------------------- */

static ft_status make(const char *path, ft_slices **out, ft_error *err)
{
    *out = NULL;
    ft_slices *s = calloc(1, sizeof *s);
    if (s) {
        s->buffer = malloc(BUFFER_BYTES);
        s->path = strdup(path);
        s->event.cap = 2 * (size_t)EVENT_BYTES;
    }
    if (!s || !s->buffer || !s->path) {
        ft__slices_close(s);
        return ft__fail(err, FT_E_MEMORY, "out of memory while reading '%s'", path);
    }
    *out = s;
    return FT_OK;
}

ft_status ft__slices_open(const char *path, ft_slices **out, ft_error *err)
{
    FT_TRY(make(path, out, err));
    ft_status status = ft__unzip_open(path, &(*out)->file, err);
    if (status == FT_OK) return FT_OK;
    ft__slices_close(*out);
    *out = NULL;
    return status;
}

ft_status ft__slices_of(const void *data, size_t length, ft_slices **out, ft_error *err)
{
    FT_TRY(make("trace", out, err));
    (*out)->memory = data;
    (*out)->memory_left = length;
    return FT_OK;
}

void ft__slices_close(ft_slices *s)
{
    if (!s) return;
    ft__unzip_close(s->file);
    ft__text_free(&s->event);
    ft__text_free(&s->devices);
    ft__text_free(&s->distributed);
    free(s->buffer);
    free(s->path);
    free(s);
}

const char *ft__slices_broken(const ft_slices *s) { return s->broken; }
uint64_t ft__slices_bytes(const ft_slices *s) { return s->bytes; }
uint64_t ft__slices_skipped(const ft_slices *s) { return s->skipped; }
const char *ft__slices_devices(const ft_slices *s) { return s->devices.length ? s->devices.at : ""; }
const char *ft__slices_distributed(const ft_slices *s) { return s->distributed.length ? s->distributed.at : ""; }
