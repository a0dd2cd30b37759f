/* web_server.c: HTTP by libmicrohttpd, a thread per connection.
 *
 *   GET  /, /NAME     the page's files, from memory
 *   GET  /api/about   which version this is, and whether it reads files
 *   POST /api/answer  a request in, its answer out: status 200, or 400 where the answer says what is wrong with it
 *   POST /api/batch   JSON Lines in, JSON Lines out, written as they are answered
 *
 * The server trusts nobody who reaches it: pages of other sites can send requests to this machine. So every request
 * must be addressed to one of our names, come from our own page where it says whence it comes, say that it is JSON
 * (what a form of another site cannot), and have the token where there is one. Bodies, header space, connections and
 * the time to send a request are bounded. A connection has its thread, so that a plan of some seconds holds nobody else
 * up. */
#define _POSIX_C_SOURCE 200809L
#include "web_server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_write.h"
#include "web_answers.h"
#include "web_check.h"
#include "web_clients.h"
#include "web_send.h"

enum { MOST_CONNECTIONS = 128, HEADER_BYTES = 32 << 10, LARGEST_REQUEST = 16 << 20, LARGEST_BATCH = 64 << 20 };
enum { BATCH_BLOCK = 32 << 10, TO_TAKE_AN_ANSWER = 12 /* times the patience for a request */ };

struct web_server {
    web_settings set;
    web_names names;
    char machine[256];
    web_answers answers;
    web_clients clients;
    struct MHD_Daemon *daemon;
};

typedef enum route { ROUTE_FILE, ROUTE_ABOUT, ROUTE_ANSWER, ROUTE_BATCH } route;

typedef struct request {
    route route;
    const web_file *file;
    size_t most; /* bytes of its body */
    ft_text body;
    bool too_large;
} request;

/* -- answering --------------------------------------------------------------------------------- */

static web_client *client_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = web_http.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static enum MHD_Result send_about(const web_server *s, struct MHD_Connection *c)
{
    ft_text out = {0};
    ft__json_open(&out);
    ft__json_member_flag(&out, "ok", true);
    ft__json_member_text(&out, "version", ft_version());
    ft__json_member_flag(&out, "files", s->set.folder->given);
    ft__json_member_flag(&out, "shipped", s->set.shipped);
    ft__json_member_whole(&out, "threads", s->set.threads);
    ft__json_close(&out);
    ft__text_add(&out, "\n");
    return web_send(c, MHD_HTTP_OK, web_json_response(&out, "application/json"));
}

static enum MHD_Result send_answer(web_server *s, struct MHD_Connection *c, const request *r)
{
    ft_text out = {0};
    bool outside = false;
    web_answer(&s->answers, r->body.at ? r->body.at : "", r->body.length, 0, &out, &outside);
    if (out.failed) {
        ft__text_free(&out);
        return web_refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out_of_memory", NULL, NULL, "out of memory");
    }
    int status = outside ? MHD_HTTP_FORBIDDEN : web_answer_status(out.at, out.length);
    ft__text_add_n(&out, "\n", 1);
    return web_send(c, status, web_json_response(&out, "application/json"));
}

static ssize_t read_batch(void *batch, uint64_t at, char *to, size_t room)
{
    (void)at;
    long got = web_batch_read(batch, to, room);
    return got > 0 ? got : got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_batch(void *batch) { web_batch_close(batch); }

static enum MHD_Result send_batch(web_server *s, struct MHD_Connection *c, request *r)
{
    web_batch *batch = web_batch_open(&s->answers, r->body.at, r->body.length);
    if (!batch) return web_refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out_of_memory", NULL, NULL, "out of memory");
    r->body = (ft_text){0}; /* the batch has it */
    struct MHD_Response *response = web_http.create_response_from_callback(MHD_SIZE_UNKNOWN, BATCH_BLOCK, read_batch,
                                                                           batch, end_batch);
    if (!response) {
        web_batch_close(batch);
        return MHD_NO;
    }
    web_http.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/x-ndjson");
    web_http.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return web_send(c, MHD_HTTP_OK, response);
}

/* -- looking at who asks what ------------------------------------------------------------------ */

static bool from_elsewhere(struct MHD_Connection *c, const char *host)
{
    const char *origin = web_header(c, MHD_HTTP_HEADER_ORIGIN), *site = web_header(c, "Sec-Fetch-Site");
    if (origin && !web_origin_matches(origin, host)) return true;
    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

/* A link with the token leaves it in a cookie and leads to the page without it, so that no history keeps it. */
static enum MHD_Result take_token(struct MHD_Connection *c, const char *token)
{
    char cookie[512];
    struct MHD_Response *r = web_http.create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    snprintf(cookie, sizeof cookie, WEB_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict", token);
    web_http.add_response_header(r, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    web_http.add_response_header(r, MHD_HTTP_HEADER_LOCATION, "/");
    return web_send(c, MHD_HTTP_SEE_OTHER, r);
}

/* A file of the page. `done`: as of look. */
static enum MHD_Result look_for_file(web_server *s, struct MHD_Connection *c, const char *url, const char *method,
                                     request *r, bool *done)
{
    const char *token = web_http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return web_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "method", MHD_HTTP_HEADER_ALLOW, "GET, HEAD",
                          "files are read with GET");
    if (s->set.token && token && !strcmp(url, "/") && web_token_equal(token, s->set.token))
        return take_token(c, s->set.token);
    r->file = web_files_find(s->set.page, url);
    if (!r->file)
        return web_refuse(c, MHD_HTTP_NOT_FOUND, "not_found", NULL, NULL,
                          s->set.page->count ? "there is no \"%.100s\" here"
                                             : "\"%.100s\": the page was not built; `make web` does",
                          url);
    *done = false;
    return MHD_YES;
}

/* Whether a request's body may be read, by what its head says of it. `done`: as of look. */
static enum MHD_Result look_at_body(struct MHD_Connection *c, request *r, bool *done)
{
    const char *length = web_header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!web_is_json(web_header(c, MHD_HTTP_HEADER_CONTENT_TYPE)))
        return web_refuse(c, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "media_type", NULL, NULL,
                          "send Content-Type: application/json, or application/x-ndjson for lines");
    if (length && strtoull(length, NULL, 10) > r->most)
        return web_refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", NULL, NULL, "at most %d MiB are read",
                          (int)(r->most >> 20));
    r->body.cap = r->most;
    *done = false;
    return MHD_YES;
}

/* Chooses the route; *done says that the request was answered already, mostly with a refusal. */
static enum MHD_Result look(web_server *s, struct MHD_Connection *c, const char *url, const char *method, request *r,
                            bool *done)
{
    static const struct {
        const char *path, *method;
        route route;
        size_t most;
    } routes[] = {{"/api/about", "GET", ROUTE_ABOUT, 0},
                  {"/api/answer", "POST", ROUTE_ANSWER, LARGEST_REQUEST},
                  {"/api/batch", "POST", ROUTE_BATCH, LARGEST_BATCH}};
    const char *host = web_header(c, MHD_HTTP_HEADER_HOST);
    *done = true;
    if (!web_host_allowed(host, &s->names))
        return web_refuse(c, MHD_HTTP_FORBIDDEN, "wrong_host", NULL, NULL,
                          "this server is not called \"%.100s\"; use its address, or localhost", host ? host : "");
    if (strncmp(url, "/api/", 5) != 0) return look_for_file(s, c, url, method, r, done);
    if (from_elsewhere(c, host))
        return web_refuse(c, MHD_HTTP_FORBIDDEN, "wrong_origin", NULL, NULL, "only this server's own page may ask it");
    if (s->set.token && !web_token_given(web_header(c, MHD_HTTP_HEADER_AUTHORIZATION),
                                         web_header(c, MHD_HTTP_HEADER_COOKIE), s->set.token))
        return web_refuse(
            c, MHD_HTTP_UNAUTHORIZED, "unauthorized", MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer",
            "the token is missing or wrong: open /?token=TOKEN first, or send Authorization: Bearer TOKEN");
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(url, routes[i].path) != 0) continue;
        if (strcmp(method, routes[i].method) != 0)
            return web_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "method", MHD_HTTP_HEADER_ALLOW, routes[i].method,
                              "%s takes %s", url, routes[i].method);
        r->route = routes[i].route;
        r->most = routes[i].most;
        if (r->most > 0) return look_at_body(c, r, done);
        *done = false;
        return MHD_YES;
    }
    return web_refuse(c, MHD_HTTP_NOT_FOUND, "not_found", NULL, NULL,
                      "there is no \"%.100s\"; there are /api/answer, /api/batch and /api/about", url);
}

static enum MHD_Result answer(web_server *s, struct MHD_Connection *c, request *r)
{
    if (r->too_large)
        return web_refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", NULL, NULL, "at most %d MiB are read",
                          (int)(r->most >> 20));
    switch (r->route) {
    case ROUTE_ABOUT: return send_about(s, c);
    case ROUTE_ANSWER: return send_answer(s, c, r);
    case ROUTE_BATCH: return send_batch(s, c, r);
    case ROUTE_FILE: break;
    }
    return web_send_file(c, r->file);
}

/* Called once when the headers are there, once for each piece of the body, and once at the end. */
static enum MHD_Result handle(void *server, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context)
{
    web_server *s = server;
    request *r = *context;
    (void)version;
    if (!r) {
        bool done = false;
        *context = r = calloc(1, sizeof *r);
        return r ? look(s, c, url, method, r, &done) : MHD_NO;
    }
    if (*size) {
        if (!r->too_large) ft__text_add_n(&r->body, data, *size);
        r->too_large = r->too_large || r->body.failed;
        *size = 0;
        return MHD_YES;
    }
    web_client_expect(&s->clients, client_of(c), 0);
    enum MHD_Result done = answer(s, c, r);
    if (r->route != ROUTE_BATCH) web_client_expect(&s->clients, client_of(c), TO_TAKE_AN_ANSWER);
    return done;
}

static void finished(void *server, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode why)
{
    web_server *s = server;
    request *r = *context;
    (void)why;
    if (r) ft__text_free(&r->body);
    free(r);
    *context = NULL;
    web_client_expect(&s->clients, client_of(c), 1); /* for its next request */
}

static void came_or_left(void *server, struct MHD_Connection *c, void **client,
                         enum MHD_ConnectionNotificationCode which)
{
    web_server *s = server;
    if (which == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = web_http.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        *client = info ? web_client_came(&s->clients, info->connect_fd) : NULL;
    } else {
        web_client_left(&s->clients, *client);
        *client = NULL;
    }
}

/* -- starting and stopping --------------------------------------------------------------------- */

static bool read_address(const char *text, int port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        return true;
    }
    return false;
}

bool web_is_loopback(const char *address)
{
    struct sockaddr_storage at;
    if (!read_address(address, 0, &at)) return false;
    if (at.ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)&at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&at)->sin6_addr);
}

static void name_server(web_server *s)
{
    size_t count = 0;
    s->names.own[count++] = "localhost";
    s->names.own[count++] = s->set.listen;
    if (web_is_loopback(s->set.listen)) {
        s->names.own[count++] = strchr(s->set.listen, ':') ? "127.0.0.1" : "::1";
        return;
    }
    if (gethostname(s->machine, sizeof s->machine - 1) == 0) s->names.own[count++] = s->machine;
    s->names.any_address = !strcmp(s->set.listen, "0.0.0.0") || !strcmp(s->set.listen, "::");
}

/* A zero in a URL would end it early for us: it becomes a letter that no name has. */
static size_t unescape(void *nobody, struct MHD_Connection *c, char *text)
{
    (void)nobody, (void)c;
    for (char *at = strstr(text, "%00"); at; at = strstr(at, "%00")) at[2] = '1';
    return web_http.http_unescape(text);
}

ft_status web_server_start(web_server **out, const ft_context *ft, const web_settings *settings, ft_error *err)
{
    struct sockaddr_storage address;
    *out = NULL;
    FT_TRY(web_http_load(err));
    if (!read_address(settings->listen, settings->port, &address))
        return ft__fail(err, FT_E_USAGE, "--listen takes an address, 127.0.0.1 or 0.0.0.0; got \"%.60s\"",
                        settings->listen);
    web_server *s = calloc(1, sizeof *s);
    if (!s) return ft__no_memory(err);
    s->set = *settings;
    name_server(s);
    if (!web_clients_start(&s->clients, settings->patience_s)) {
        free(s);
        return ft__fail(err, FT_E_MEMORY, "the system gives no threads");
    }
    web_answers_open(&s->answers, ft, settings->folder, settings->threads);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
    if (address.ss_family == AF_INET6) flags |= MHD_USE_IPv6;
    s->daemon = web_http.start_daemon(
        flags, (uint16_t)settings->port, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(TO_TAKE_AN_ANSWER * settings->patience_s) + 1,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_NOTIFY_COMPLETED, finished,
        s, MHD_OPTION_NOTIFY_CONNECTION, came_or_left, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
    if (!s->daemon) {
        web_server_stop(s);
        return ft__fail(err, FT_E_FILE, "cannot listen on %s, port %d: is it taken?", settings->listen, settings->port);
    }
    *out = s;
    return FT_OK;
}

int web_server_port(const web_server *s)
{
    const union MHD_DaemonInfo *info = web_http.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : s->set.port;
}

void web_server_stop(web_server *s)
{
    if (s->daemon) web_http.stop_daemon(s->daemon);
    web_clients_stop(&s->clients);
    web_answers_close(&s->answers);
    free(s);
}
