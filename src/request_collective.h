/* `"task": "collective"`: one exchange among ranks. */
#ifndef FT_REQUEST_COLLECTIVE_H
#define FT_REQUEST_COLLECTIVE_H
#include "base/text.h"
#include "comm/collective.h"
#include "request.h"

typedef struct ft_collective_request {
    ft_collective op;
    double bytes;
    ft_group group;
    ft_cluster cluster;
    const ft_device *device;
    double quantile; /* 0: the context's */
} ft_collective_request;

ft_status ft__collective_request_read(const json_t *object, ft_device_source find, void *source,
                                      ft_collective_request *out, ft_error *err);
/* One object: ms, low_ms, high_ms, bound, algorithm, protocol, algbw_gbps, busbw_gbps, tier, understood; network
 * where it was simulated. */
void ft__answer_collective(ft_text *out, const json_t *id, const ft_collective_request *r, const ft_comm *c,
                           const char *warnings);
#endif
