/* The answer to `"task": "collective"`. */
#ifndef FT_REPORT_JSON_ANSWER_COLLECTIVE_H
#define FT_REPORT_JSON_ANSWER_COLLECTIVE_H
#include "base/text.h"
#include "request/collective.h"

/* One object: ms, low_ms, high_ms, bound, algorithm, protocol, algbw_gbps, busbw_gbps, tier, understood; network
 * where it was simulated. */
void ft__answer_collective(ft_text *out, const json_t *id, const ft_collective_request *r, const ft_comm *c,
                           const char *warnings);
#endif
