/* Model configs: whatever JSON comes, sizes that can be computed with, or an error that says where; and from any such
 * sizes a graph, or an error. The first byte chooses what an unknown model_type is read as. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "fuzz.h"
#include "import/config/config.h"
#include "model/workload.h"

static void check_text(const char *text)
{
    json_t *valid = json_string(text);
    FUZZ_CHECK(valid);
    json_decref(valid);
}

static bool size(int64_t value) { return value >= 0 && value <= (int64_t)1 << 40; }
static bool share(double value) { return value >= 0 && value <= 1; }

static void check_arch(const ft_arch *a)
{
    FUZZ_CHECK(a->model_type && a->activation && a->design < FT_DESIGN_COUNT);
    FUZZ_CHECK(a->layers > 0 && size(a->layers) && size(a->hidden) && size(a->ffn) && size(a->vocab));
    FUZZ_CHECK(a->heads == 0 || (a->head_dim > 0 && a->hidden > 0 && a->heads <= ((int64_t)1 << 31) / a->head_dim));
    FUZZ_CHECK(a->kv_heads == 0 || a->heads % a->kv_heads == 0);
    FUZZ_CHECK(a->rotary_dim % 2 == 0 && a->rotary_dim <= a->head_dim);
    FUZZ_CHECK(a->experts == 0 || (a->topk > 0 && a->topk <= a->experts && a->moe_ffn > 0));
    FUZZ_CHECK(size(a->shared_ffn) && size(a->labels) && size(a->max_position) && size(a->position_rows));
    FUZZ_CHECK(a->stages >= 0 && a->stages <= FT_MAX_STAGES);
    FUZZ_CHECK(share(a->embed_dropout) && share(a->attention_dropout) && share(a->residual_dropout));
    FUZZ_CHECK(share(a->mlp_dropout) && share(a->activation_dropout));
    FUZZ_CHECK(isfinite(a->embed_scale) && isfinite(a->attention_softcap) && isfinite(a->logit_softcap));
    FUZZ_CHECK(a->window >= 0 && a->window_every != 1);
}

static void check_graph(const ft_arch *arch, ft_task task)
{
    ft_workload work = {.task = task,
                        .dtype = FT_BF16,
                        .kv_dtype = FT_BF16,
                        .batch = 2,
                        .seq = 16,
                        .attention = FT_EAGER,
                        .optimizer = FT_ADAMW,
                        .accumulate = 1};
    ft_arena *arena = ft__arena_new((size_t)64 << 20);
    ft_graph *graph = NULL;
    ft_error err = {0};
    FUZZ_CHECK(arena);
    ft_status status = ft__model_graph(arch, &work, arena, &graph, &err);
    if (status == FT_OK)
        FUZZ_CHECK(graph && isfinite(graph->parameters) && graph->parameters > 0);
    else
        FUZZ_CHECK(err.code == status && err.message[0]);
    ft__arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    json_t *config;
    if (length < 1 || ft__json_parse((const char *)data + 1, length - 1, "fuzz", &config, NULL) != FT_OK) return 0;
    const char *nearest = data[0] < ft__config_type_count() ? ft__config_type_at(data[0]) : NULL;
    ft_arch arch;
    ft_error err = {0};
    ft_status status = ft__config_read(config, nearest, "model", &arch, &err);
    FUZZ_CHECK(err.code == status);
    if (status == FT_OK) {
        check_arch(&arch);
        check_graph(&arch, data[0] % 2 ? FT_TRAIN : FT_FORWARD_PASS);
    } else {
        FUZZ_CHECK(err.message[0] && err.where[0]);
        check_text(err.message);
        check_text(err.where);
    }
    json_decref(config);
    return 0;
}
