/* error.c: filling an ft_error.
 *
 * The message is formatted into a local buffer first, so that a caller may quote the error it is replacing
 * (`ft__fail(err, code, "loading the predictor: %s", err->message)`): that is how the trail is kept while an
 * error travels up. A message that does not fit is cut between two characters, never inside one, because it
 * ends up in a JSON answer that must stay valid UTF-8; what a format such as "%.60s" cut inside of one is left out.
 */
#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Leaves out bytes that are no character: quoted words are cut by bytes. */
static void keep_characters(char *text)
{
    size_t kept = 0, left = strlen(text);
    for (size_t at = 0, length; left > 0; at += length, left -= length) {
        const size_t whole = ft__utf8_length(text + at, left);
        length = whole > 0 ? whole : 1;
        memmove(text + kept, text + at, whole);
        kept += whole;
    }
    text[kept] = '\0';
}

/* Copies what fits; a multi-byte character that would be cut is left out whole. */
static void copy_cut(char *to, size_t room, const char *from)
{
    size_t length = strlen(from);
    if (length >= room) {
        length = room - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) length--;
    }
    memmove(to, from, length);
    to[length] = '\0';
}

__attribute__((format(printf, 6, 0))) static ft_status fill(ft_error *err, ft_status code, const char *where, int line,
                                                            int column, const char *format, va_list args)
{
    if (!err) return code;
    /* One byte longer than the field, so that copy_cut sees that something was cut. */
    char message[sizeof err->message + 4];
    int length = vsnprintf(message, sizeof message, format, args);
    if (length < 0) message[0] = '\0';
    char place[sizeof err->where + 4];
    copy_cut(place, sizeof place, where ? where : "");

    err->code = code;
    copy_cut(err->message, sizeof err->message, message);
    keep_characters(err->message);
    copy_cut(err->where, sizeof err->where, place);
    err->line = line > 0 ? line : 0;
    err->column = column > 0 ? column : 0;
    err->value = NAN;
    return code;
}

ft_status ft__fail(ft_error *err, ft_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, NULL, 0, 0, format, args);
    va_end(args);
    return code;
}

ft_status ft__fail_at(ft_error *err, ft_status code, const char *where, int line, int column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, where, line, column, format, args);
    va_end(args);
    return code;
}

ft_status ft__fail_value(ft_error *err, ft_status code, const char *where, double value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, where, 0, 0, format, args);
    va_end(args);
    if (err) err->value = value;
    return code;
}

const char *ft_status_name(ft_status s)
{
    switch (s) {
#define X(code, name, exit_status) \
    case code: return name;
        FT_STATUS_LIST(X)
#undef X
    case FT_STATUS_COUNT: break;
    }
    return "bug";
}

int ft_status_exit(ft_status s)
{
    switch (s) {
#define X(code, name, exit_status) \
    case code: return exit_status;
        FT_STATUS_LIST(X)
#undef X
    case FT_STATUS_COUNT: break;
    }
    return 4;
}

ft_status ft__no_memory(ft_error *err) { return ft__fail(err, FT_E_MEMORY, "out of memory"); }
