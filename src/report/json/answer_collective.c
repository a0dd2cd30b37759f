/* Answering one exchange. Bandwidths are nccl-tests': algbw is bytes over time, busbw is what the slowest wire would
 * carry if the exchange were a ring. */
#include "report/json/answer_collective.h"

#include "kernel/collective.h"
#include "report/json/answer.h"
#include "report/text/network_screen.h"

void ft__answer_collective(ft_text *out, const json_t *id, const ft_collective_request *r, const ft_comm *c,
                           const char *warnings)
{
    double algorithm_gbps = r->bytes / (c->ms * 1e6);
    ft__answer_begin(out, id);
    ft__answer_figure(out, "ms", c->ms);
    ft__answer_figure(out, "low_ms", c->low_ms);
    ft__answer_figure(out, "high_ms", c->high_ms);
    ft__answer_word(out, "bound", ft_bound_name(FT_BOUND_COMMUNICATION));
    ft__answer_word(out, "source", ft_source_name(c->source));
    ft__answer_word(out, "algorithm", c->algorithm);
    ft__answer_word(out, "protocol", c->protocol);
    ft__answer_figure(out, "algbw_gbps", algorithm_gbps);
    ft__answer_figure(out, "busbw_gbps", algorithm_gbps * ft__collective_wire((int)r->op, (double)r->group.size));
    ft__answer_figure(out, "latency_ms", c->latency_ms);
    ft__answer_word(out, "tier", r->cluster.tier[c->tier].name);
    ft__answer_word(out, "understood", r->cluster.understood);
    if (r->cluster.simulated) ft__answer_network(out, r->cluster.simulated);
    ft__answer_lines(out, "warnings", warnings);
    ft__json_close(out);
}
