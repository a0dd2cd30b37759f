/* basis.c: where forecasts of a GPU would come from. */
#include "study/basis.h"

#include <stdio.h>
#include <string.h>

#include "request/keys.h"

const char *const ft__basis_kernels[FT_BASIS_KERNELS] = {"gemm", "attention", "rmsnorm", "elementwise", "conv2d"};

/* One kernel of each kind. */
static const struct probe {
    const char *op;
    struct {
        const char *key;
        int64_t value;
    } sizes[8];
} kernels[FT_BASIS_KERNELS] = {
    {"gemm", {{"m", 4096}, {"n", 4096}, {"k", 4096}}},
    {"attention", {{"batch", 1}, {"heads", 32}, {"kv_heads", 8}, {"q_len", 2048}, {"kv_len", 2048}, {"head_dim", 128}}},
    {"rmsnorm", {{"rows", 8192}, {"cols", 4096}}},
    {"add", {{"numel", 33554432}}},
    {"conv2d", {{"n", 32}, {"c", 64}, {"h", 56}, {"w", 56}, {"k", 64}, {"r", 3}, {"s", 3}, {"pad", 1}}},
};

static json_t *request_of(const struct probe *k, const char *gpu)
{
    json_t *q = json_object();
    bool made = ft__key_set(q, FT_KEY_ID_TASK, json_string("kernel")) &&
                ft__key_set(q, FT_KEY_ID_GPU, json_string(gpu)) && ft__key_set(q, FT_KEY_ID_OP, json_string(k->op));
    for (int i = 0; made && i < 8 && k->sizes[i].key; i++)
        made = json_object_set_new(q, k->sizes[i].key, json_integer(k->sizes[i].value)) == 0;
    if (made) return q;
    json_decref(q);
    return NULL;
}

static void read_answer(const json_t *answer, int k, ft_basis *out)
{
    const char *source = json_string_value(json_object_get(answer, "source"));
    const char *kin = json_string_value(json_object_get(answer, "kin"));
    double low = json_number_value(json_object_get(answer, "low_ms"));
    snprintf(out->source[k], sizeof out->source[k], "%s", source ? source : "");
    snprintf(out->kin[k], sizeof out->kin[k], "%s", kin ? kin : "");
    out->span[k] = low > 0 ? json_number_value(json_object_get(answer, "high_ms")) / low : 0;
}

ft_status ft__basis_of(ft_answerer answer, void *user, const char *gpu, ft_basis *out, ft_error *err)
{
    snprintf(out->name, sizeof out->name, "%s", gpu);
    for (int k = 0; k < FT_BASIS_KERNELS; k++) {
        json_t *request = request_of(&kernels[k], gpu), *told = NULL;
        ft_status status = request ? answer(user, request, &told, err) : ft__no_memory(err);
        json_decref(request);
        FT_TRY(status);
        const json_t *fault = json_object_get(told, "error");
        const char *code = json_string_value(json_object_get(fault, "code"));
        if (fault && (!code || strcmp(code, "unsupported") != 0)) /* no such GPU */
            status = ft__fail(err, FT_E_NAME, "%s", json_string_value(json_object_get(fault, "message")));
        else
            read_answer(told, k, out);
        json_decref(told);
        FT_TRY(status);
    }
    return FT_OK;
}
