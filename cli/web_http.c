/* web_http.c: finds libmicrohttpd and its functions. */
#include "web_http.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

web_http_calls web_http;

#ifdef __APPLE__
static const char library[] = "libmicrohttpd.12.dylib";
#else
static const char library[] = "libmicrohttpd.so.12"; /* of 0.9.75 and of 1.0 */
#endif

/* ISO C has no cast from an object's address to a function's. */
static bool find(void *from, const char *name, void *to, size_t size)
{
    void *found = dlsym(from, name);
    memcpy(to, &found, size);
    return found != NULL;
}

ft_status web_http_load(ft_error *err)
{
    void *from = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!from)
        return ft__fail(err, FT_E_UNSUPPORTED,
                        "foretell web needs libmicrohttpd (%s), which is not installed: Debian has it as "
                        "libmicrohttpd12; any other file server serves the page, too",
                        library);
#define X(name)                                                          \
    if (!find(from, "MHD_" #name, &web_http.name, sizeof web_http.name)) \
        return ft__fail(err, FT_E_UNSUPPORTED, "%s has no MHD_%s: it is not libmicrohttpd's", library, #name);
    WEB_HTTP_CALLS(X)
#undef X
    return FT_OK;
}
