/* log.c: a log of requests, line by line.
 *
 *   CSV with a header     arrival_s (or arrival_ms), input, output, client, priority
 *   Azure (2023)          TIMESTAMP,ContextTokens,GeneratedTokens; a date with fractions of a second
 *   JSONL                 {"arrival_s": 0.1, "input": 512, "output": 64, "client": 3, "priority": 0, "hashes": [1, 2]}
 *   Mooncake              {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}; ms
 *
 * Times count from the first line's. A line out of order, without a number or with one that cannot be is refused with
 * its number: a log that is read wrongly answers another question. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "serving/load.h"

enum { MOST_COLUMNS = 32, MOST_LINE = 1 << 22, MOONCAKE_BLOCK = 512, MOST_PAIRS = 1 << 20 };

typedef enum column { NO_COLUMN, ARRIVAL_S, ARRIVAL_MS, DATE, INPUT, OUTPUT, CLIENT, PRIORITY } column;

static const struct {
    const char *name;
    column is;
} columns[] = {{"arrival_s", ARRIVAL_S},     {"arrival", ARRIVAL_S},      {"arrival_ms", ARRIVAL_MS},
               {"timestamp_ms", ARRIVAL_MS}, {"timestamp", DATE},         {"input", INPUT},
               {"input_tokens", INPUT},      {"input_length", INPUT},     {"contexttokens", INPUT},
               {"prompt_tokens", INPUT},     {"output", OUTPUT},          {"output_tokens", OUTPUT},
               {"output_length", OUTPUT},    {"generatedtokens", OUTPUT}, {"completion_tokens", OUTPUT},
               {"client", CLIENT},           {"priority", PRIORITY}};

struct ft_log {
    FILE *file;
    char *path, *line;
    size_t room;
    int number; /* of the line */
    bool json, first_seen;
    bool again;    /* the line that said what the log is, is its first request too: a pipe cannot be wound back */
    bool timeless; /* read for its lengths alone: no times are needed, nor an order */
    column layout[MOST_COLUMNS];
    int column_count;
    double origin_ms, last_ms, block_tokens, bytes, read;
    uint64_t *hashes;
    size_t hash_room;
};

static ft_status broken(const ft_log *l, ft_error *err, const char *what, const char *found)
{
    return ft__fail_at(err, FT_E_FORMAT, l->path, l->number, 0, "%s%s%.*s%s", what, *found ? ", not \"" : "",
                       (int)ft__utf8_cut(found, 60), found, *found ? "\"" : "");
}

/* Up to the line's end, which is not kept; what is no text is not read to the end of memory. */
static ft_status read_line(ft_log *l, size_t *length, bool *any, ft_error *err)
{
    int c;
    *length = 0;
    *any = true;
    l->number++;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n') {
        if (*length == MOST_LINE) return broken(l, err, "a line of at most 4 MiB was expected", "");
        if (c == '\0') return broken(l, err, "text was expected, not a null byte (is it UTF-16?)", "");
        if (*length + 2 > l->room) {
            size_t room = l->room ? 2 * l->room : 256;
            char *moved = realloc(l->line, room);
            if (!moved) return ft__no_memory(err);
            l->line = moved;
            l->room = room;
        }
        l->line[(*length)++] = (char)c;
    }
    if (ferror(l->file)) return ft__file_fault(err, "read", l->path, errno);
    *any = c != EOF || *length > 0;
    if (!*any) l->number--;
    if (*length) l->line[*length] = '\0';
    l->read += (double)*length + 1;
    return FT_OK;
}

/* The next line with anything in it. */
static ft_status next_line(ft_log *l, bool *more, ft_error *err)
{
    *more = true;
    if (l->again) {
        l->again = false;
        return FT_OK;
    }
    for (size_t length = 0;;) {
        FT_TRY(read_line(l, &length, more, err));
        if (!*more) return FT_OK;
        if (l->number == 1 && length >= 3 && !memcmp(l->line, "\xEF\xBB\xBF", 3)) { /* the byte-order mark */
            length -= 3;
            memmove(l->line, l->line + 3, length + 1);
        }
        while (length > 0 && isspace((unsigned char)l->line[length - 1])) l->line[--length] = '\0';
        if (length > 0) return FT_OK;
    }
}

static column named(const char *name, size_t length)
{
    char lower[32];
    if (length >= sizeof lower) return NO_COLUMN;
    for (size_t i = 0; i < length; i++) lower[i] = (char)tolower((unsigned char)name[i]);
    lower[length] = '\0';
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!strcmp(columns[i].name, lower)) return columns[i].is;
    return NO_COLUMN;
}

static ft_status read_header(ft_log *l, ft_error *err)
{
    unsigned seen = 0;
    for (char *at = l->line; at; l->column_count++) {
        if (l->column_count == MOST_COLUMNS) return broken(l, err, "a header of at most 32 columns was expected", "");
        size_t length = strcspn(at, ",");
        column c = named(at, length);
        l->layout[l->column_count] = c;
        seen |= 1u << c;
        at = at[length] ? at + length + 1 : NULL;
    }
    bool time = l->timeless || seen & (1u << ARRIVAL_S | 1u << ARRIVAL_MS | 1u << DATE);
    if (time && seen & 1u << INPUT && seen & 1u << OUTPUT) return FT_OK;
    if (l->timeless) return broken(l, err, "a header with input and output was expected", l->line);
    return broken(l, err,
                  "a header with arrival_s (or arrival_ms, TIMESTAMP), input (ContextTokens) and output "
                  "(GeneratedTokens) was expected",
                  l->line);
}

static ft_status open_log(const char *path, bool timeless, ft_log **out, ft_error *err)
{
    *out = NULL;
    ft_log *l = calloc(1, sizeof *l);
    if (l) l->path = strdup(path);
    if (l) l->timeless = timeless;
    if (!l || !l->path) {
        free(l);
        return ft__no_memory(err);
    }
    l->file = fopen(path, "r");
    if (!l->file) {
        ft_status status = ft__file_fault(err, "open", path, errno);
        ft__log_close(l);
        return status;
    }
    if (fseek(l->file, 0, SEEK_END) == 0) {
        l->bytes = (double)ftell(l->file);
        rewind(l->file);
    }
    bool any;
    ft_status status = next_line(l, &any, err);
    if (status == FT_OK && !any) status = ft__fail_at(err, FT_E_FORMAT, path, 1, 0, "the log has no line");
    if (status == FT_OK) {
        l->json = l->line[0] == '{';
        if (l->json) { /* the first line is a request too; whether it has hashes says what is cached */
            l->block_tokens = strstr(l->line, "\"hash_ids\"") || strstr(l->line, "\"hashes\"") ? MOONCAKE_BLOCK : 0;
            l->again = true;
        } else {
            status = read_header(l, err);
        }
    }
    if (status != FT_OK) {
        ft__log_close(l);
        return status;
    }
    *out = l;
    return FT_OK;
}

ft_status ft__log_open(const char *path, ft_log **out, ft_error *err) { return open_log(path, false, out, err); }

/* Days since 1970 of a proleptic Gregorian date (Hinnant's algorithm). */
static double days_of(int y, int m, int d)
{
    y -= m <= 2;
    int era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097.0 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "2023-11-16 18:15:46.6805900", or plain milliseconds. */
static bool read_date(const char *text, double *ms)
{
    int y, mo, d, h, mi, used = 0;
    double s;
    if (ft__number_parse(text, ms)) return true;
    if (sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%n", &y, &mo, &d, &h, &mi, &used) != 5 || !used) return false;
    char seconds[32];
    size_t length = strspn(text + used, "0123456789.");
    if (length == 0 || length >= sizeof seconds) return false;
    memcpy(seconds, text + used, length);
    seconds[length] = '\0';
    if (!ft__number_parse(seconds, &s) || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 24 || mi > 59 || s >= 61)
        return false;
    *ms = 1e3 * (86400 * days_of(y, mo, d) + 3600 * (double)h + 60 * (double)mi + s);
    return true;
}

static ft_status set_tokens(const ft_log *l, const char *what, double value, int32_t *out, ft_error *err)
{
    char message[96];
    if (value >= 1 && value <= 1e9 && value == floor(value)) {
        *out = (int32_t)value;
        return FT_OK;
    }
    snprintf(message, sizeof message, "%s must be a whole number of tokens from 1 to 1e9, got %g", what, value);
    return broken(l, err, message, "");
}

static ft_status set_cell(ft_log *l, column c, const char *text, double *ms, ft_call *out, ft_error *err)
{
    double value = 0;
    if (c == NO_COLUMN) return FT_OK;
    if (c == DATE) return read_date(text, ms) ? FT_OK : broken(l, err, "a time was expected", text);
    if (!ft__number_parse(text, &value)) return broken(l, err, "a number was expected", text);
    switch (c) {
    case ARRIVAL_S: *ms = 1e3 * value; return FT_OK;
    case ARRIVAL_MS: *ms = value; return FT_OK;
    case INPUT: return set_tokens(l, "the prompt", value, &out->prompt, err);
    case OUTPUT: return set_tokens(l, "the answer", value < 1 && value >= 0 ? 1 : value, &out->answer, err);
    case CLIENT:
        if (value < 0 || value > 1e6) return broken(l, err, "a client's number from 0 to 1e6 was expected", text);
        out->client = (int32_t)value;
        return FT_OK;
    case PRIORITY: out->priority = (int32_t)fmin(fmax(value, -1e9), 1e9); return FT_OK;
    case NO_COLUMN:
    case DATE: break;
    }
    return FT_OK;
}

static ft_status read_cells(ft_log *l, double *ms, ft_call *out, ft_error *err)
{
    int i = 0;
    for (char *at = l->line; at; i++) {
        size_t length = strcspn(at, ",");
        char *rest = at[length] ? at + length + 1 : NULL;
        at[length] = '\0';
        if (i >= l->column_count) return broken(l, err, "more cells than the header has", "");
        while (*at == ' ') at++;
        FT_TRY(set_cell(l, l->layout[i], at, ms, out, err));
        at = rest;
    }
    return i == l->column_count ? FT_OK : broken(l, err, "fewer cells than the header has", "");
}

static ft_status read_hashes(ft_log *l, const json_t *list, ft_call *out, ft_error *err)
{
    size_t count = json_array_size(list), i;
    json_t *each;
    if (count > l->hash_room) {
        uint64_t *hashes = realloc(l->hashes, count * sizeof *hashes);
        if (!hashes) return ft__no_memory(err);
        l->hashes = hashes;
        l->hash_room = count;
    }
    json_array_foreach ((json_t *)(uintptr_t)list, i, each) {
        if (!json_is_integer(each)) return broken(l, err, "hashes must be whole numbers", "");
        l->hashes[i] = (uint64_t)json_integer_value(each);
    }
    out->hashes = l->hashes;
    out->hash_count = (int32_t)count;
    return FT_OK;
}

static ft_status read_object(ft_log *l, double *ms, ft_call *out, ft_error *err)
{
    json_t *object = NULL, *value;
    const char *key;
    bool time = false, input = false, output = false;
    ft_error inner = {0};
    if (ft__json_parse(l->line, strlen(l->line), "", &object, &inner) != FT_OK || !json_is_object(object)) {
        json_decref(object);
        return broken(l, err, "a JSON object was expected: {\"arrival_s\": 0.5, \"input\": 512, \"output\": 64}", "");
    }
    ft_status status = FT_OK;
    json_object_foreach (object, key, value) {
        column c = named(key, strlen(key));
        if (!strcmp(key, "hash_ids") || !strcmp(key, "hashes")) status = read_hashes(l, value, out, err);
        char text[40] = "?";
        if (json_is_number(value)) snprintf(text, sizeof text, "%.17g", json_number_value(value));
        if (json_is_string(value)) snprintf(text, sizeof text, "%.39s", json_string_value(value));
        if (status == FT_OK) status = set_cell(l, c, text, ms, out, err);
        if (status != FT_OK) break;
        time = time || c == ARRIVAL_S || c == ARRIVAL_MS || c == DATE;
        input = input || c == INPUT;
        output = output || c == OUTPUT;
    }
    json_decref(object);
    if (status == FT_OK && !((time || l->timeless) && input && output))
        status = broken(l, err,
                        l->timeless ? "input and output were expected"
                                    : "arrival_s (or timestamp), input and output were expected",
                        "");
    return status;
}

/* Beyond any clock, in nanoseconds since 1970 too; differences stay numbers. */
static const double latest_ms = 1e30;

ft_status ft__log_next(ft_log *l, bool *more, ft_call *out, ft_error *err)
{
    double ms = 0;
    FT_TRY(next_line(l, more, err));
    if (!*more) return l->first_seen ? FT_OK : broken(l, err, "the log has no requests", "");
    *out = (ft_call){0};
    FT_TRY(l->json ? read_object(l, &ms, out, err) : read_cells(l, &ms, out, err));
    if (!(fabs(ms) < latest_ms)) return broken(l, err, "a time of less than 1e30 milliseconds was expected", "");
    if (!l->first_seen) {
        l->first_seen = true;
        l->origin_ms = l->last_ms = ms;
    }
    if (ms < l->last_ms && !l->timeless) {
        char message[128];
        snprintf(message, sizeof message,
                 "requests must be sorted by time: this one arrives %.6g ms before the one above", l->last_ms - ms);
        return broken(l, err, message, "");
    }
    l->last_ms = ms;
    out->sent_ms = ms - l->origin_ms;
    return FT_OK;
}

ft_status ft__log_lengths(const char *path, ft_length_pair **out, size_t *count, ft_error *err)
{
    ft_log *l = NULL;
    size_t room = 0;
    ft_call call;
    bool more = true;
    *out = NULL;
    *count = 0;
    ft_status status = open_log(path, true, &l, err);
    while (status == FT_OK) {
        status = ft__log_next(l, &more, &call, err);
        if (status != FT_OK || !more || *count == MOST_PAIRS) break;
        if (*count == room) {
            room = room ? 2 * room : 256;
            ft_length_pair *moved = realloc(*out, room * sizeof *moved);
            if (!moved) {
                status = ft__no_memory(err);
                break;
            }
            *out = moved;
        }
        (*out)[(*count)++] = (ft_length_pair){call.prompt, call.answer};
    }
    ft__log_close(l);
    return status;
}

double ft__log_share(const ft_log *l) { return l->bytes > 0 ? l->read / l->bytes : 0; }

double ft__log_block_tokens(const ft_log *l) { return l->block_tokens; }

void ft__log_close(ft_log *l)
{
    if (!l) return;
    if (l->file) fclose(l->file);
    free(l->path);
    free(l->line);
    free(l->hashes);
    free(l);
}
