/* `"task": "compare"`: what differs between answers. */
#ifndef FT_REQUEST_COMPARE_H
#define FT_REQUEST_COMPARE_H
#include "request/request.h"

/* {"task":"compare","answers":[{"ok":true,...},"kept.json"],"requests":[{"task":"train",...}],"names":["a","b","c"]}.
 * Everything points into the document. */
typedef struct ft_compare_request {
    const json_t *answers;  /* a list of objects and of files that hold one or, a line each, several; NULL: none */
    const json_t *requests; /* a list of requests that are answered first; NULL: none */
    const json_t *names;    /* a list of what to call them; NULL: by their files, ids or numbers */
} ft_compare_request;
ft_status ft__compare_request_read(const json_t *object, ft_compare_request *out, ft_error *err);
#endif
