/* lists.c: what an exchange of lists takes.
 *
 *   gather   fill a buffer; a view of it per rank in Python; NCCL; per rank a copy out of NCCL's own buffer
 *            (ProcessGroupNCCL.cpp), issued while NCCL runs, as far as the queue of kernels reaches
 *   reduce   divide; a view of the gradient per rank in Python; a copy per rank into NCCL's buffer; NCCL
 *
 * What the loops cost the host is in data/hosts. */
#include "ranks/lists.h"

#include <math.h>

#include "kernel/host.h"
#include "ranks/many_constants.h"

static double list_ms(const ft_ranks *r, ft_listing what)
{
    const ft_issuer host = ft__step_host(r->work, r->device);
    return ft__host_list_us(&host, what) * 1e-3;
}

/* Reading and writing so many bytes. */
static double pass_ms(const ft_ranks *r, double bytes)
{
    return 2 * bytes / (FT_K_MANY_PASS_SHARE * r->device->memory_gbps * 1e6);
}

/* The pieces of a list out of NCCL's buffer, or into it. Taken to go by the memory's rate. */
static double pieces_ms(const ft_ranks *r, double bytes)
{
    const double alike = FT_K_MANY_PIECES_GBPS / r->device->memory_gbps;
    return bytes / FT_K_MANY_PIECES_BYTES * FT_K_MANY_PIECES_MS * alike;
}

static double gather_element(const ft_ranks *r)
{
    return r->parallel->gather_bytes > 0 ? r->parallel->gather_bytes : fmax(2, ft_dtype_bytes(r->work->dtype));
}

ft_status ft__list_gather(const ft_ranks *r, const ft_pace *pace, const ft_tensor *t, ft_ranks_width *width,
                          ft_listed *out, ft_error *err)
{
    ft_group group = ft__ranks_sharers(r->parallel, ft__is_expert(t));
    double n = (double)group.size, bytes = ft__tensor_numel(t) * ft__ranks_travels(t, gather_element(r)), nccl;
    *out = (ft_listed){0};
    if (group.size < 2) return FT_OK;
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_GATHER, &group, bytes, &nccl, width, err));
    double copied = list_ms(r, FT_LIST_COPIED),
           before = list_ms(r, FT_LIST_CALLED) + pass_ms(r, bytes / 2) + n * list_ms(r, FT_LIST_GATHERED);
    /* Copies wait behind NCCL; those that the queue does not take are issued when it has ended. */
    double late = pace->queue > 0 ? fmax(n - pace->queue, 0) * copied : 0;
    double ended = nccl + fmax(n * pace->gap + pieces_ms(r, bytes), late);
    out->issue = before + fmax(n * copied, late > 0 ? nccl + late : 0);
    out->whole = before + fmax(n * copied, ended);
    return FT_OK;
}

ft_status ft__list_reduce(const ft_ranks *r, const ft_tensor *gradient, ft_ranks_width *width, ft_reducing *out,
                          ft_error *err)
{
    const ft_parallel *p = r->parallel;
    bool expert = ft__is_expert(gradient);
    ft_group sharers = ft__ranks_sharers(p, expert), all = ft__ranks_replicas(p, expert);
    ft_group copies = {.size = all.size / sharers.size, .stride = all.stride * sharers.size};
    double n = (double)sharers.size, bytes = ft__tensor_numel(gradient) * ft__ranks_reduce_bytes(p, r->work), nccl,
           over;
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_REDUCE_SCATTER, &sharers, bytes, &nccl, width, err));
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_REDUCE, &copies, bytes / n, &over, width, err));
    out->exchange += nccl + over;
    if (sharers.size < 2) return FT_OK;
    double copied = n * list_ms(r, FT_LIST_COPIED);
    out->list += list_ms(r, FT_LIST_CALLED) + n * list_ms(r, FT_LIST_SCATTERED) + copied;
    out->exchange += pass_ms(r, bytes) + fmax(pieces_ms(r, bytes) - copied, 0); /* copies follow the host */
    return FT_OK;
}

ft_status ft__list_spread(const ft_ranks *r, double tensors, double elements, ft_ranks_width *width, double *ms,
                          ft_error *err)
{
    ft_group group = ft__ranks_sharers(r->parallel, false);
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_GATHER, &group, elements * gather_element(r), ms, width, err));
    if (group.size > 1) *ms += tensors * (double)group.size * list_ms(r, FT_LIST_SPREAD);
    return FT_OK;
}
