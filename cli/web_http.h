/* libmicrohttpd, loaded when the server starts and not with the program: it brings a dozen libraries for TLS, on which
 * every other command would wait. Calls are those of its header without their MHD_: web_http.queue_response(...). */
#ifndef CLI_WEB_HTTP_H
#define CLI_WEB_HTTP_H
#include <microhttpd.h>

#include "foretell.h"

#define WEB_HTTP_CALLS(X)            \
    X(add_response_header)           \
    X(create_response_from_buffer)   \
    X(create_response_from_callback) \
    X(destroy_response)              \
    X(get_connection_info)           \
    X(get_daemon_info)               \
    X(http_unescape)                 \
    X(lookup_connection_value)       \
    X(queue_response)                \
    X(start_daemon)                  \
    X(stop_daemon)

typedef struct web_http_calls {
#define X(name) __typeof__(&MHD_##name) name;
    WEB_HTTP_CALLS(X)
#undef X
} web_http_calls;
extern web_http_calls web_http; /* empty until loaded */

/* FT_E_UNSUPPORTED where it is not installed. */
ft_status web_http_load(ft_error *err);
#endif
