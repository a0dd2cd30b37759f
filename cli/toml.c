/* toml.c: a small part of TOML, line by line. */
#include "toml.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct reader {
    const char *at, *end; /* of one line */
    const char *where;
    int line;
    ft_text table, path, value;
    ft_error *err;
} reader;

static ft_status refuse(const reader *r, const char *what)
{
    return ft__fail_at(r->err, FT_E_SYNTAX, r->where, r->line, 0, "%s", what);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool at_end(reader *r)
{
    skip_blanks(r);
    return r->at == r->end || *r->at == '#';
}

static bool bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* -- texts ------------------------------------------------------------------------------------- */

static ft_status add_code(reader *r, ft_text *out, int digits)
{
    unsigned code = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        char c = r->at < r->end ? *r->at : ' ';
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit > 15) return refuse(r, "\\u wants four hexadecimal digits, \\U eight");
        code = code << 4 | digit;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return refuse(r, "no such character");
    char bytes[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(lead[n] | code);
    ft__text_add_n(out, bytes, n);
    return FT_OK;
}

/* Of "basic" or 'literal' text; stands behind it afterwards. */
static ft_status quoted(reader *r, ft_text *out)
{
    const char quote = *r->at++;
    if (r->end - r->at >= 2 && r->at[0] == quote && r->at[1] == quote)
        return refuse(r, "text of several lines is not read here: write it on one");
    while (r->at < r->end && *r->at != quote) {
        if ((unsigned char)*r->at < 0x20 && *r->at != '\t') return refuse(r, "a control character inside a text");
        if (quote == '\'' || *r->at != '\\') {
            ft__text_add_n(out, r->at++, 1);
            continue;
        }
        static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
        char c = ++r->at < r->end ? *r->at++ : ' ';
        const char *known = strchr(from, c);
        if (c == 'u' || c == 'U')
            FT_TRY(add_code(r, out, c == 'u' ? 4 : 8));
        else if (known)
            ft__text_add_n(out, &to[known - from], 1);
        else
            return refuse(r, "no such escape in a text; a \\ is written \\\\");
    }
    if (r->at == r->end) return refuse(r, "the text has no end on this line");
    r->at++;
    return FT_OK;
}

/* a.b."c d": bare or quoted, dots between. */
static ft_status key(reader *r, ft_text *out)
{
    for (;;) {
        skip_blanks(r);
        const char *from = r->at;
        if (r->at < r->end && (*r->at == '"' || *r->at == '\'')) {
            size_t before = out->length;
            FT_TRY(quoted(r, out));
            if (out->length == before) return refuse(r, "the name of a key is empty");
        } else {
            while (r->at < r->end && bare(*r->at)) r->at++;
            if (r->at == from)
                return refuse(r, "expected the name of a key: letters, digits, _ and -, or a quoted text");
            ft__text_add_n(out, from, (size_t)(r->at - from));
        }
        skip_blanks(r);
        if (r->at == r->end || *r->at != '.') return FT_OK;
        ft__text_add(out, ".");
        r->at++;
    }
}

/* -- values ------------------------------------------------------------------------------------ */

static ft_status list(reader *r, cli_toml_value *out)
{
    out->type = CLI_TOML_LIST;
    for (r->at++;; r->at++) {
        if (at_end(r)) return refuse(r, "the list has no end on this line");
        if (*r->at == ']') break;
        if (*r->at != '"' && *r->at != '\'') return refuse(r, "a list holds texts: [\"h100_sxm\", \"h200_sxm\"]");
        FT_TRY(quoted(r, &r->value));
        ft__text_add_n(&r->value, "", 1);
        out->count++;
        if (at_end(r)) return refuse(r, "the list has no end on this line");
        if (*r->at == ']') break;
        if (*r->at != ',') return refuse(r, "a comma stands between the texts of a list");
    }
    r->at++;
    return FT_OK;
}

static ft_status plain(reader *r, cli_toml_value *out)
{
    char word[64];
    size_t length = 0;
    while (r->at < r->end && *r->at != '#' && *r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
        if (length + 1 == sizeof word) return refuse(r, "expected a text in quotes, a number, true or false");
        word[length++] = *r->at++;
    }
    word[length] = '\0';
    if (!strcmp(word, "true") || !strcmp(word, "false")) {
        out->type = CLI_TOML_SWITCH;
        out->number = word[0] == 't';
        return FT_OK;
    }
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) /* 1_000: an underscore between two digits */
        if (word[i] != '_' || i == 0 || word[i - 1] < '0' || word[i - 1] > '9' || word[i + 1] < '0' ||
            word[i + 1] > '9')
            word[kept++] = word[i];
    word[kept] = '\0';
    out->type = CLI_TOML_NUMBER;
    if (ft__number_parse(word, &out->number)) return FT_OK;
    return refuse(r, "expected a text in quotes, a number, true or false");
}

static ft_status value(reader *r, cli_toml_value *out)
{
    if (at_end(r)) return refuse(r, "a value is missing behind =");
    ft__text_clear(&r->value);
    if (*r->at == '{') return refuse(r, "tables in braces are not read here: write [table] and a line for each key");
    if (*r->at == '[') {
        FT_TRY(list(r, out));
    } else if (*r->at == '"' || *r->at == '\'') {
        out->type = CLI_TOML_TEXT;
        FT_TRY(quoted(r, &r->value));
    } else {
        FT_TRY(plain(r, out));
    }
    if (!at_end(r)) return refuse(r, "one value stands behind =, and nothing but a comment behind it");
    out->text = r->value.at ? r->value.at : "";
    return FT_OK;
}

/* -- lines ------------------------------------------------------------------------------------- */

static ft_status table(reader *r)
{
    r->at++;
    if (r->at < r->end && *r->at == '[') return refuse(r, "lists of tables are not read here");
    ft__text_clear(&r->table);
    FT_TRY(key(r, &r->table));
    if (r->at == r->end || *r->at != ']') return refuse(r, "a table ends in ]");
    r->at++;
    return at_end(r) ? FT_OK : refuse(r, "nothing but a comment stands behind the name of a table");
}

static ft_status line(reader *r, cli_toml_sink sink, void *user)
{
    cli_toml_value v = {.line = r->line};
    if (at_end(r)) return FT_OK;
    if (*r->at == '[') return table(r);
    ft__text_clear(&r->path);
    if (r->table.length) ft__text_addf(&r->path, "%s.", r->table.at);
    FT_TRY(key(r, &r->path));
    if (r->at == r->end || *r->at != '=') return refuse(r, "expected = behind the name of a key");
    r->at++;
    FT_TRY(value(r, &v));
    if (r->table.failed || r->path.failed || r->value.failed) return ft__no_memory(r->err);
    v.path = r->path.at;
    return sink(user, &v, r->err);
}

ft_status cli_toml_read(const char *text, size_t length, const char *where, cli_toml_sink sink, void *user,
                        ft_error *err)
{
    reader r = {.where = where, .err = err};
    const char *end = text + length;
    ft_status status = FT_OK;
    for (const char *at = text; at < end && status == FT_OK; at = r.end + 1) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        r.at = at;
        r.end = stop ? stop : end;
        r.line++;
        status = memchr(at, '\0', (size_t)(r.end - at)) ? refuse(&r, "not a text file") : line(&r, sink, user);
    }
    ft__text_free(&r.table);
    ft__text_free(&r.path);
    ft__text_free(&r.value);
    return status;
}
