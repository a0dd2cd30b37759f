/* `"task": "collective"`: one exchange among ranks. */
#ifndef FT_REQUEST_COLLECTIVE_H
#define FT_REQUEST_COLLECTIVE_H
#include "comm/collective.h"
#include "request/idle.h"
#include "request/request.h"

typedef struct ft_collective_request {
    ft_collective op;
    double bytes;
    ft_group group;
    ft_cluster cluster;
    const ft_device *device;
    double quantile; /* 0: the context's */
    ft_idle_list idle;
    const char *warnings; /* as of ft_request; its reader leaves it to the context */
} ft_collective_request;

ft_status ft__collective_request_read(const json_t *object, ft_device_source find, void *source,
                                      ft_collective_request *out, ft_error *err);
#endif
