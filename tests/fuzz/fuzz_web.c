/* What `foretell web` reads of headers and answers: any bytes, no crash, and what is let in is what it should be. */
#define _GNU_SOURCE /* strcasestr */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "web_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const web_names names = {.own = {"localhost", "127.0.0.1", "::1"}},
                           wide = {.own = {"localhost"}, .any_address = true};
    static const char token[] = "a-secret-of-enough-letters";
    char *text = malloc(size + 1), *host = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    strcpy(host, text);
    host[strcspn(host, "\n")] = '\0'; /* two headers: what stands before a line break, and behind it */
    const char *rest = text + strlen(host) + (text[strlen(host)] == '\n');

    if (web_host_allowed(host, &names))
        FUZZ_CHECK(!strncasecmp(host, "localhost", 9) || !strncmp(host, "127.0.0.1", 9) || !strncmp(host, "[::1]", 5) ||
                   !strncasecmp(host, "[localhost]", 11) || !strncmp(host, "[127.0.0.1]", 11));
    if (web_host_allowed(host, &wide)) FUZZ_CHECK(strlen(host) < 300);
    if (web_origin_matches(rest, host))
        FUZZ_CHECK(strlen(rest) > strlen(host) && !strcasecmp(rest + strlen(rest) - strlen(host), host));
    if (web_token_given(host, rest, token)) FUZZ_CHECK(strstr(host, token) || strstr(rest, token));
    if (web_token_equal(text, token)) FUZZ_CHECK(!strcmp(text, token));
    if (web_accepts_gzip(text)) FUZZ_CHECK(strcasestr(text, "gzip") != NULL);
    if (web_etag_matches(host, "\"0123\"")) FUZZ_CHECK(strstr(host, "\"0123\"") || strchr(host, '*'));
    if (web_is_json(text)) FUZZ_CHECK(!strncasecmp(text, "application/", 12));
    FUZZ_CHECK(strchr(web_mime(text), '/') != NULL);
    int status = web_answer_status(text, size); /* with zeros inside, too */
    FUZZ_CHECK(status == 200 || status == 400 || status == 500);
    free(text);
    free(host);
    return 0;
}
