/* web_send.c: what the server sends: files of the page, JSON, refusals.
 *
 * Every response has the headers that keep other sites out and the page to itself. Files carry the hash of their bytes:
 * who has them already gets 304. Refusals look as errors of the library do, so that a client reads one kind. */
#include "web_send.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json_write.h"
#include "web_check.h"

const char *web_header(struct MHD_Connection *c, const char *name)
{
    return web_http.lookup_connection_value(c, MHD_HEADER_KIND, name);
}

enum MHD_Result web_send(struct MHD_Connection *c, int status, struct MHD_Response *response)
{
    static const char *const always[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
         "img-src 'self' data: blob:; style-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    if (!response) return MHD_NO;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        web_http.add_response_header(response, always[i][0], always[i][1]);
    enum MHD_Result done = web_http.queue_response(c, (unsigned)status, response);
    web_http.destroy_response(response);
    return done;
}

struct MHD_Response *web_json_response(ft_text *text, const char *type)
{
    struct MHD_Response *r = NULL;
    if (!text->failed) r = web_http.create_response_from_buffer(text->length, text->at, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        ft__text_free(text);
        return NULL;
    }
    web_http.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    web_http.add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return r;
}

enum MHD_Result web_refuse(struct MHD_Connection *c, int status, const char *code, const char *extra, const char *value,
                           const char *format, ...)
{
    char message[512];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    ft_text out = {0};
    ft__json_open(&out);
    ft__json_member_flag(&out, "ok", false);
    ft__json_member_open(&out, "error");
    ft__json_member_text(&out, "code", code);
    ft__json_member_text(&out, "message", message);
    ft__json_close(&out);
    ft__json_close(&out);
    ft__text_add(&out, "\n");
    struct MHD_Response *r = web_json_response(&out, "application/json");
    if (r && extra) web_http.add_response_header(r, extra, value);
    return web_send(c, status, r);
}

enum MHD_Result web_send_file(struct MHD_Connection *c, const web_file *f)
{
    bool zipped = f->zipped && web_accepts_gzip(web_header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    const char *etag = zipped ? f->zipped_etag : f->etag;
    bool known = web_etag_matches(web_header(c, MHD_HTTP_HEADER_IF_NONE_MATCH), etag);
    struct MHD_Response *r =
        known    ? web_http.create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT)
        : zipped ? web_http.create_response_from_buffer(f->zipped_length, f->zipped, MHD_RESPMEM_PERSISTENT)
                 : web_http.create_response_from_buffer(f->length, f->plain, MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    web_http.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, f->type);
    web_http.add_response_header(r, MHD_HTTP_HEADER_ETAG, etag);
    web_http.add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    web_http.add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"); /* asks each time, gets 304 */
    if (zipped && !known) web_http.add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return web_send(c, known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r);
}
