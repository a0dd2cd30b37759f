/* What a request from a browser says about itself, read without trusting it. Texts come from headers: any bytes without
 * a zero. Nothing here looks at the system. */
#ifndef CLI_WEB_CHECK_H
#define CLI_WEB_CHECK_H
#include <stdbool.h>
#include <stddef.h>

/* Who the server may be called. A page of another site that has its name point here (DNS rebinding) sends that name. */
typedef struct web_names {
    const char *own[4]; /* NULL ends them: "localhost", what --listen said, the machine's name */
    bool any_address;   /* every number is ours: the server listens on all of them */
} web_names;

bool web_host_allowed(const char *host, const web_names *names);
/* "http://HOST" or "https://HOST", where HOST is what the request was sent to. "null" is nobody's. */
bool web_origin_matches(const char *origin, const char *host);
/* "Bearer TOKEN" in Authorization, or the cookie that a link with the token left. Either header may be NULL. */
bool web_token_given(const char *authorization, const char *cookies, const char *token);
bool web_token_equal(const char *given, const char *token); /* takes as long wherever they differ */
bool web_accepts_gzip(const char *header);
bool web_etag_matches(const char *header, const char *etag); /* If-None-Match: a list, or * */
bool web_is_json(const char *content_type); /* application/json or JSON Lines, with or without charset */
const char *web_mime(const char *name);
/* 200, 400 where the answer is an error of the request, 500 where it is ours. */
int web_answer_status(const char *answer, size_t length);

#define WEB_COOKIE "foretell_token"
#endif
