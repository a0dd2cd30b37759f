/* exchange_screen.c: one exchange, a row per GPU, in the words of nccl-tests.
 *
 * algbw is the bytes over the time; busbw what the slowest wire carries, so that it compares with the link's rate
 * whatever the exchange and the number of ranks.
 */
#include "report/text/exchange_screen.h"

#include "kernel/collective.h"
#include "report/text/columns.h"
#include "report/text/lines.h"

static void add_row(ft_columns *c, const ft_exchange_case *e)
{
    const ft_collective_request *r = &e->request;
    double algorithm_gbps = r->bytes / (e->comm.ms * 1e6);
    ft__cell_add(c, r->device->name);
    ft__add_figure(ft__cell(c), e->comm.ms, 4);
    ft__add_figure(ft__cell(c), e->comm.low_ms, 3);
    ft__add_figure(ft__cell(c), e->comm.high_ms, 3);
    ft__add_figure(ft__cell(c), algorithm_gbps, 3);
    ft__add_figure(ft__cell(c), algorithm_gbps * ft__collective_wire((int)r->op, (double)r->group.size), 3);
    ft__add_percent(ft__cell(c), e->comm.latency_ms / e->comm.ms);
    ft__cell_add(c, r->cluster.tier[e->comm.tier].name);
    ft__cell_addf(c, "%s%s%s", e->comm.algorithm, *e->comm.protocol ? " " : "", e->comm.protocol);
    ft__cell_add(c, ft_source_name(e->comm.source));
}

bool ft__screen_exchange(ft_text *out, const ft_style *style, const ft_exchange_case *cases, size_t count,
                         double quantile)
{
    const ft_collective_request *first = &cases[0].request;
    ft_columns c;
    ft__columns_init(&c, "lrrrrrrlll");
    c.drop = "jgi";
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, ft__collective_name(first->op));
    ft__ink_end(out, style);
    ft__text_add(out, "  of ");
    if (first->bytes < 1e4) /* as many as they are: 1e-06 MB says nothing */
        ft__text_addf(out, "%.0f byte%s", first->bytes, first->bytes == 1 ? "" : "s");
    else
        ft__add_figure(out, first->bytes / 1e6, 4), ft__text_add(out, " MB");
    ft__text_addf(out, " among %lld ranks", (long long)first->group.size);
    if (first->group.stride > 1) ft__text_addf(out, ", %lld apart", (long long)first->group.stride);
    ft__text_add(out, "\n\n");
    for (const char *const *head = (const char *const[]){"gpu", "ms", "low", "high", "algbw GB/s", "busbw GB/s",
                                                         "latency", "bound by", "as", "source", NULL};
         *head; head++)
        ft__cell_add(&c, *head);
    for (size_t i = 0; i < count; i++) add_row(&c, &cases[i]);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  The truth should lie in low to high ");
    ft__add_confidence(out, quantile);
    ft__text_add(out, "; busbw is what the slowest wire carries, as nccl-tests prints it.\n");
    return printed && !out->failed;
}
