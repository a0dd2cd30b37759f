/* collective.c: reading a request for one exchange. */
#include "request/collective.h"

#include <string.h>

#include "base/text.h"
#include "graph/operator.h"
#include "kernel/collective.h"
#include "request/effects.h"
#include "request/keys.h"
#include "request/tasks.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ft_status read_op(const json_t *object, ft_collective *out, ft_error *err)
{
    static const struct {
        const char *theirs;
        ft_collective op;
    } also[] = {{"allreduce", FT_COLLECTIVE_ALL_REDUCE},
                {"allgather", FT_COLLECTIVE_ALL_GATHER},
                {"reducescatter", FT_COLLECTIVE_REDUCE_SCATTER},
                {"alltoall", FT_COLLECTIVE_ALL_TO_ALL},
                {"bcast", FT_COLLECTIVE_BROADCAST},
                {"sendrecv", FT_COLLECTIVE_SEND_RECV},
                {"send", FT_COLLECTIVE_SEND_RECV},
                {"p2p", FT_COLLECTIVE_SEND_RECV}};
    const char *name = NULL;
    FT_TRY(ft__json_string(object, FT_KEY(EXCHANGE), FT_REQUIRED, &name, "", err));
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
                       "unknown collective \"%.60s\"; expected all_reduce, all_gather, reduce_scatter, all_to_all, "
                       "broadcast, reduce or send_recv",
                       name);
}

/* Bytes are given as they are; what numbers they hold only says how they are summed. */
static ft_status read_eight_bit(const json_t *object, int *out, ft_error *err)
{
    int found = -1;
    const char *said = json_string_value(ft__key_get(object, FT_KEY_ID_EXCHANGE_DTYPE));
    if (said && !strncmp(said, "amp_", 4)) found = FT_BF16; /* a recipe for whole models, whose gradients are wide */
    if (found < 0) FT_TRY(ft__request_word(object, "dtype", ft__dtype_words, COUNT(ft__dtype_words), &found, err));
    *out = found < 0 ? -1 : ft_dtype_bytes((ft_dtype)found) <= 1;
    return FT_OK;
}

static ft_status needed(const json_t *object, ft_key_id id, ft_error *err)
{
    const char *key = ft__keys[id].key;
    if (json_object_get(object, key)) return FT_OK;
    return ft__fail_at(err, FT_E_MISSING, key, 0, 0, "\"%s\" is missing", key);
}

/* Engines have kernels of their own for sums within a node. */
static void note_idle(const json_t *object, int64_t span, ft_collective_request *r)
{
    static const ft_key_id outside[] = {FT_KEY_ID_GPUS_PER_NODE,    FT_KEY_ID_INTERCONNECT, FT_KEY_ID_TOPOLOGY,
                                        FT_KEY_ID_OVERSUBSCRIPTION, FT_KEY_ID_LEAF_NODES,   FT_KEY_ID_NETWORK};
    const json_t *cluster = ft__key_get(object, FT_KEY_ID_EXCHANGE_CLUSTER);
    bool sums = r->op == FT_COLLECTIVE_ALL_REDUCE, one_node = span <= r->cluster.gpus_per_node;
    if (r->op != FT_COLLECTIVE_ALL_TO_ALL)
        ft__idle_note(&r->idle, object, FT_KEY_ID_EXCHANGE_SKEW, "only all_to_all sends some ranks more than others");
    if (!sums || !one_node)
        ft__idle_note(&r->idle, object, FT_KEY_ID_EXCHANGE_ENGINE,
                      sums ? "the ranks are in several nodes"
                           : "engines have kernels of their own for all_reduce alone");
    if (!json_is_object(cluster)) return;
    int64_t nodes = ft__json_whole_of(ft__key_get(cluster, FT_KEY_ID_NODES));
    if (nodes > (span + r->cluster.gpus_per_node - 1) / r->cluster.gpus_per_node)
        ft__idle_note(&r->idle, cluster, FT_KEY_ID_NODES, "the ranks fill fewer nodes");
    for (size_t i = 0; i < COUNT(outside); i++) {
        bool given = ft__key_get(cluster, outside[i]) != NULL;
        const char *why = given ? ft__network_idle(cluster, r->device, span, ft__keys[outside[i]].key) : NULL;
        if (why) ft__idle_note(&r->idle, cluster, outside[i], why);
    }
}

ft_status ft__collective_request_read(const json_t *object, ft_device_source find, void *source,
                                      ft_collective_request *out, ft_error *err)
{
    ft_said said;
    memset(out, 0, sizeof *out);
    FT_TRY(ft__task_keys_known(object, FT_ASK_COLLECTIVE, err));
    FT_TRY(read_op(object, &out->op, err));
    FT_TRY(needed(object, FT_KEY_ID_EXCHANGE_BYTES, err));
    FT_TRY(needed(object, FT_KEY_ID_EXCHANGE_RANKS, err));
    ft__said_init(&said);
    FT_TRY(ft__said_read(object, FT_SECTION_COMMON, &said, err));
    FT_TRY(ft__said_read(object, FT_SECTION_COLLECTIVE, &said, err));
    out->bytes = ft__real_of(&said, FT_KEY_ID_EXCHANGE_BYTES);
    out->group = (ft_group){.size = ft__whole_of(&said, FT_KEY_ID_EXCHANGE_RANKS),
                            .stride = ft__whole_of(&said, FT_KEY_ID_EXCHANGE_STRIDE),
                            .engine = (ft_engine)ft__word_of(&said, FT_KEY_ID_EXCHANGE_ENGINE)};
    FT_TRY(ft__json_number(object, FT_KEY(EXCHANGE_SKEW), FT_OPTIONAL, 1, (double)out->group.size, &out->group.skew, "",
                           err));
    FT_TRY(read_eight_bit(object, &out->group.narrow, err));
    out->quantile = ft__given(&said, FT_KEY_ID_QUANTILE) ? ft__real_of(&said, FT_KEY_ID_QUANTILE) : 0;
    const json_t *gpu = ft__key_get(object, FT_KEY_ID_GPU);
    if (!gpu)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    FT_TRY(find(source, gpu, &out->device, err));
    int64_t span = (out->group.size - 1) * out->group.stride + 1;
    if (span > FT_MOST_RANKS)
        return ft__fail_at(err, FT_E_RANGE, "stride", 0, 0, "%lld ranks %lld apart span more than %d GPUs",
                           (long long)out->group.size, (long long)out->group.stride, FT_MOST_RANKS);
    FT_TRY(ft__cluster_read(ft__key_get(object, FT_KEY_ID_EXCHANGE_CLUSTER), out->device, span, &out->cluster, err));
    note_idle(object, span, out);
    return FT_OK;
}
