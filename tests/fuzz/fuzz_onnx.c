/* ONNX files: whatever bytes come, a graph whose every tensor can be computed with, or an error that says why. The
 * first byte chooses batch and seq, the second the task and what is done with the graph. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "fuzz.h"
#include "import/onnx/onnx.h"

static void check_text(const char *text)
{
    json_t *valid = json_string(text); /* NULL where the text is not UTF-8 */
    FUZZ_CHECK(valid);
    json_decref(valid);
}

static void check_graph(const ft_graph *g)
{
    FUZZ_CHECK(isfinite(g->parameters) && g->parameters >= 0);
    FUZZ_CHECK(isfinite(g->parameter_bytes) && g->parameter_bytes >= -1);
    for (int32_t i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        FUZZ_CHECK(t->rows >= 1 && t->cols >= 1 && t->copies >= 1 && t->storage >= 0 && t->storage <= i);
        FUZZ_CHECK(isfinite(ft__tensor_bytes(t)) && t->element_bytes > 0);
        check_text(t->name);
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        for (int k = 0; k < n->in_count; k++) FUZZ_CHECK(n->in[k] >= 0 && n->in[k] < g->tensor_count);
        for (int k = 0; k < n->out_count; k++) FUZZ_CHECK(n->out[k] >= 0 && n->out[k] < g->tensor_count);
        FUZZ_CHECK(isfinite(ft__op_flops(&n->op)) && isfinite(ft__op_bytes(&n->op)) && ft__op_bytes(&n->op) >= 0);
        check_text(n->name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    ft_arch arch = {0};
    ft_error err = {0};
    ft_graph *graph = NULL;
    if (length < 2) return 0;
    ft_status status = ft__onnx_read(data + 2, length - 2, "fuzz.onnx", &arch, &err);
    if (status == FT_OK) {
        static const ft_attention_kind attention[] = {FT_FLASH, FT_EAGER, FT_SDPA, FT_EAGER};
        ft_workload work = {.task = (data[1] & 1) ? FT_TRAIN : FT_FORWARD_PASS,
                            .dtype = (data[1] & 2) ? FT_FP32 : FT_BF16,
                            .kv_dtype = FT_BF16,
                            .autocast = (data[1] & 4) != 0,
                            .batch = arch.fixed_batch > 0 ? arch.fixed_batch : 1 + (data[0] & 15),
                            .seq = arch.fixed_seq > 0 ? arch.fixed_seq : 1 + (data[0] >> 4),
                            .attention = attention[(data[1] >> 3) & 3],
                            .execution = (data[1] & 32) ? FT_RUN_COMPILE : FT_RUN_EAGER,
                            .nchw = (data[1] & 64) != 0,
                            .optimizer = FT_ADAMW,
                            .accumulate = 1};
        ft_arena *arena = ft__arena_new((size_t)64 << 20);
        FUZZ_CHECK(arena);
        check_text(arch.warnings);
        status = ft__model_graph(&arch, &work, arena, &graph, &err);
        ft__arch_release(&arch); /* before the graph is looked at: it must not need the file */
        if (status == FT_OK) {
            FUZZ_CHECK(graph);
            check_graph(graph);
        }
        ft__arena_free(arena);
    }
    FUZZ_CHECK(err.code == status);
    if (status != FT_OK) {
        FUZZ_CHECK(err.message[0]);
        check_text(err.message);
        check_text(err.where);
    }
    return 0;
}
