/* trace.c: a trace by its file's name. */
#include "kernel/host.h"
#include "study/context.h"
#include "trace/slices.h"

ft_status ft__trace_of(const ft_context *ft, ft_scratch *scratch, const ft_trace_request *r, ft_trace_report *out,
                       ft_error *err)
{
    ft_slices *from;
    const ft_host *host = NULL;
    *out = (ft_trace_report){.quantile = r->quantile};
    if (r->host) FT_TRY(ft__find_host(scratch, r->host, &host, err));
    FT_TRY(ft__slices_open(r->path, &from, err));
    ft_status status = ft__trace_report_of(from, ft__context_predictor(ft), r->on, r->gpus, r->gpu_count,
                                           r->quantile > 0 ? r->quantile : ft__context_quantile(ft), host, out, err);
    ft__slices_close(from);
    if (status != FT_OK && err && !err->where[0] && status != FT_E_MEMORY) {
        ft_error said = *err;
        ft__fail_at(err, status, r->path, 0, 0, "%s", said.message);
    }
    return status;
}
