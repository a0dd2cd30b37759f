/* web_check.c: headers, taken apart. tests/fuzz/fuzz_web.c throws bytes at all of it. */
#define _POSIX_C_SOURCE 200809L
#include "web_check.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_HOST = 255 };

static bool is_address(const char *name)
{
    unsigned char room[16];
    return inet_pton(AF_INET, name, room) == 1 || inet_pton(AF_INET6, name, room) == 1;
}

/* The name without its port: "[::1]:80" is "::1". False for what is no host. Ports are not ours to judge: a tunnel has
 * another one. */
static bool host_name(const char *host, char out[LONGEST_HOST + 1])
{
    const char *from = host, *end, *port;
    if (*host == '[') {
        from = host + 1;
        end = strchr(from, ']');
        if (!end) return false;
        port = end + 1;
    } else {
        end = port = host + strcspn(host, ":");
    }
    size_t length = (size_t)(end - from);
    if (length == 0 || length > LONGEST_HOST) return false;
    if (*port == ':') port++;
    if (strlen(port) > 5 || port[strspn(port, "0123456789")]) return false;
    memcpy(out, from, length);
    out[length] = '\0';
    return true;
}

bool web_host_allowed(const char *host, const web_names *names)
{
    char name[LONGEST_HOST + 1];
    if (!host || !host_name(host, name)) return false;
    for (size_t i = 0; i < sizeof names->own / sizeof *names->own && names->own[i]; i++)
        if (!strcasecmp(names->own[i], name)) return true;
    return names->any_address && is_address(name);
}

bool web_origin_matches(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (!strncasecmp(origin, schemes[i], length) && host && !strcasecmp(origin + length, host)) return true;
    }
    return false;
}

bool web_token_equal(const char *given, const char *token)
{
    size_t length = strlen(token), other = strlen(given);
    unsigned differs = length != other;
    for (size_t i = 0; i < length; i++) differs |= (unsigned char)token[i] ^ (unsigned char)(i < other ? given[i] : 0);
    return !differs;
}

/* "a=b; foretell_token=TOKEN; c=d" */
static bool cookie_fits(const char *cookies, const char *token)
{
    enum { LONGEST = 256 };
    static const char name[] = WEB_COOKIE "=";
    char value[LONGEST + 1];
    for (const char *at = cookies; *at;) {
        at += strspn(at, "; \t");
        size_t length = strcspn(at, ";");
        if (length >= sizeof name - 1 && !strncmp(at, name, sizeof name - 1)) {
            size_t size = length - (sizeof name - 1);
            if (size <= LONGEST) {
                memcpy(value, at + sizeof name - 1, size);
                value[size] = '\0';
                if (web_token_equal(value, token)) return true;
            }
        }
        at += length;
    }
    return false;
}

bool web_token_given(const char *authorization, const char *cookies, const char *token)
{
    static const char bearer[] = "Bearer ";
    if (authorization && !strncasecmp(authorization, bearer, sizeof bearer - 1) &&
        web_token_equal(authorization + sizeof bearer - 1, token))
        return true;
    return cookies && cookie_fits(cookies, token);
}

/* The next word of a list with commas; its length, 0 at the end. */
static size_t next_word(const char **at)
{
    *at += strspn(*at, ", \t");
    return strcspn(*at, ",");
}

bool web_accepts_gzip(const char *header)
{
    if (!header) return false;
    size_t length;
    for (const char *at = header; (length = next_word(&at)) > 0; at += length) {
        size_t name = strcspn(at, ",; \t");
        if (name != 4 || strncasecmp(at, "gzip", 4)) continue;
        for (size_t i = name; i + 2 < length; i++) /* gzip;q=0 is a refusal */
            if ((at[i] == 'q' || at[i] == 'Q') && at[i + 1] == '=')
                return at[i + 2 + strspn(at + i + 2, "0.")] > '0' && at[i + 2 + strspn(at + i + 2, "0.")] <= '9';
        return true;
    }
    return false;
}

bool web_etag_matches(const char *header, const char *etag)
{
    if (!header) return false;
    size_t length, own = strlen(etag);
    for (const char *at = header; (length = next_word(&at)) > 0; at += length) {
        const char *tag = at;
        size_t size = length;
        while (size > 0 && (tag[size - 1] == ' ' || tag[size - 1] == '\t')) size--;
        if (size == 1 && *tag == '*') return true;
        if (size > 2 && !strncmp(tag, "W/", 2)) {
            tag += 2;
            size -= 2;
        }
        if (size == own && !memcmp(tag, etag, own)) return true;
    }
    return false;
}

bool web_is_json(const char *content_type)
{
    static const char *const types[] = {"application/json", "application/x-ndjson", "application/jsonl"};
    if (!content_type) return false;
    size_t length = strcspn(content_type, "; \t");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == length && !strncasecmp(content_type, types[i], length)) return true;
    return false;
}

const char *web_mime(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".wasm", "application/wasm"},
        {".svg", "image/svg+xml"},
        {".json", "application/json"},
        {".png", "image/png"},
        {".gz", "application/gzip"},
        {".map", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".txt", "text/plain; charset=utf-8"},
        {".woff2", "font/woff2"},
        {".ico", "image/x-icon"},
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (!strcmp(dot, types[i][0])) return types[i][1];
    return "application/octet-stream";
}

/* Where `word` stands at `at`; what follows it, or NULL. */
static const char *behind(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && !memcmp(at, word, length) ? at + length : NULL;
}

/* An id first, where the request had one, then "ok", and behind a false one the error with its code; no blanks. */
int web_answer_status(const char *answer, size_t length)
{
    const char *at = answer, *end = answer + length, *id = behind(at, end, "{\"id\"");
    if (id) {
        at = id + (id < end); /* the colon */
        if (at < end && *at == '"')
            for (at++; at < end && *at != '"'; at++) at += *at == '\\' && at + 1 < end;
        while (at < end && *at != ',') at++;
    }
    at += at < end; /* the brace, or the comma behind the id */
    const char *ok = behind(at, end, "\"ok\"");
    if (ok && behind(ok, end, ":true")) return 200;
    for (; at < end; at++) {
        const char *code = behind(at, end, "\"code\"");
        if (code) return behind(code, end, ":\"out_of_memory\"") || behind(code, end, ":\"bug\"") ? 500 : 400;
    }
    return 400;
}
