/* collective.c: reading a request for one exchange. */
#include "request/collective.h"

#include <string.h>

#include "base/text.h"
#include "graph/operator.h"
#include "kernel/collective.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ft_status read_op(const json_t *object, ft_collective *out, ft_error *err)
{
    static const struct {
        const char *theirs;
        ft_collective op;
    } also[] = {{"allreduce", FT_ALL_REDUCE}, {"allgather", FT_ALL_GATHER}, {"reducescatter", FT_REDUCE_SCATTER},
                {"alltoall", FT_ALL_TO_ALL},  {"bcast", FT_BROADCAST},      {"sendrecv", FT_SEND_RECV},
                {"send", FT_SEND_RECV},       {"p2p", FT_SEND_RECV}};
    const char *name = NULL;
    FT_TRY(ft__json_string(object, "op", FT_REQUIRED, &name, "", err));
    int found = ft__collective_find(name);
    for (size_t i = 0; i < COUNT(also) && found < 0; i++)
        if (!strcmp(also[i].theirs, name)) found = (int)also[i].op;
    if (found >= 0) {
        *out = (ft_collective)found;
        return FT_OK;
    }
    const char *near = ft__nearest(name, ft__collective_names, FT_COLLECTIVE_COUNT);
    if (near)
        return ft__fail_at(err, FT_E_NAME, "op", 0, 0, "unknown collective \"%.60s\"; did you mean \"%s\"?", name,
                           near);
    return ft__fail_at(err, FT_E_NAME, "op", 0, 0,
                       "unknown collective \"%.60s\"; it is all_reduce, all_gather, reduce_scatter, all_to_all, "
                       "broadcast, reduce or send_recv",
                       name);
}

/* Bytes are given as they are; what numbers they hold only says how they are summed. */
static ft_status read_narrow(const json_t *object, int *out, ft_error *err)
{
    int found = -1;
    const char *said = json_string_value(json_object_get(object, "dtype"));
    if (said && !strncmp(said, "amp_", 4)) found = FT_BF16; /* a recipe for whole models, whose gradients are wide */
    if (found < 0) FT_TRY(ft__request_word(object, "dtype", ft__dtype_words, COUNT(ft__dtype_words), &found, err));
    *out = found < 0 ? -1 : ft_dtype_bytes((ft_dtype)found) <= 1;
    return FT_OK;
}

ft_status ft__collective_request_read(const json_t *object, ft_device_source find, void *source,
                                      ft_collective_request *out, ft_error *err)
{
    static const char *const known[] = {"id",      "task",   "op",   "bytes",  "ranks",    "gpu",
                                        "cluster", "stride", "skew", "engine", "quantile", "dtype"};
    memset(out, 0, sizeof *out);
    FT_TRY(ft__json_known_keys(object, known, COUNT(known), "", err));
    FT_TRY(read_op(object, &out->op, err));
    FT_TRY(ft__json_number(object, "bytes", FT_REQUIRED, 1, 1e15, &out->bytes, "", err));
    FT_TRY(ft__json_whole(object, "ranks", FT_REQUIRED, 2, FT_MOST_RANKS, &out->group.size, "", err));
    out->group.stride = 1;
    FT_TRY(ft__json_whole(object, "stride", FT_OPTIONAL, 1, FT_MOST_RANKS, &out->group.stride, "", err));
    FT_TRY(ft__json_number(object, "skew", FT_OPTIONAL, 1, (double)out->group.size, &out->group.skew, "", err));
    int engine = FT_ENGINE_ANY;
    FT_TRY(ft__request_word(object, "engine", ft__engine_words, COUNT(ft__engine_words), &engine, err));
    out->group.engine = (ft_engine)engine;
    FT_TRY(read_narrow(object, &out->group.narrow, err));
    FT_TRY(ft__json_number(object, "quantile", FT_OPTIONAL, 0.5, 0.99, &out->quantile, "", err));
    const json_t *gpu = json_object_get(object, "gpu");
    if (!gpu)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    FT_TRY(find(source, gpu, &out->device, err));
    int64_t span = (out->group.size - 1) * out->group.stride + 1;
    if (span > FT_MOST_RANKS)
        return ft__fail_at(err, FT_E_RANGE, "stride", 0, 0, "%lld ranks %lld apart span more than %d GPUs",
                           (long long)out->group.size, (long long)out->group.stride, FT_MOST_RANKS);
    return ft__cluster_read(json_object_get(object, "cluster"), out->device, span, &out->cluster, err);
}
