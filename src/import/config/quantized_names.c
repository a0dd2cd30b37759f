/* quantized_names.c: which kinds of modules, and how many layers of them, a name in a list of a quantised checkpoint
 * means. */
#include <string.h>

#include "import/config/quantization.h"

enum { IN_ATTENTION = 1 << FT_OF_ATTENTION, IN_OUTPUT = 1 << FT_OF_OUTPUT, IN_MLP = 1 << FT_OF_MLP };
enum { IN_EXPERTS = 1 << FT_OF_EXPERTS, IN_SHARED = 1 << FT_OF_SHARED, IN_HEAD = 1 << FT_OF_HEAD };

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

/* Which kinds a name or pattern means; 0: of none that is quantised (norms, routers, embeddings, towers). */
unsigned ft__quantized_kinds(const char *name)
{
    static const char *const never[] = {"norm", "router", "embed", "visual", "vision", "indexer", "conv1d", "e_score"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (has(name, never[i])) return 0;
    if (has(name, "lm_head") || !strcmp(name, "head")) return IN_HEAD;
    if (has(name, "mtp") || has(name, "shared_expert_gate") || !strcmp(name, "gate")) return 0;
    if (has(name, "attn") || has(name, "mixer")) {
        if (has(name, "o_proj") || has(name, "out_proj")) return IN_OUTPUT;
        return has(name, "_proj") ? IN_ATTENTION : IN_ATTENTION | IN_OUTPUT;
    }
    if (has(name, "shared_expert")) return IN_SHARED;
    if (has(name, "experts")) return IN_EXPERTS;
    size_t length = strlen(name);
    if (length > 5 && !strcmp(name + length - 5, ".gate")) return 0;
    if (has(name, "mlp") || has(name, "ffn")) return IN_MLP;
    const char *layer = strstr(name, "layers.");
    if (!layer) return 0;
    layer += strlen("layers.") + strspn(layer + strlen("layers."), "0123456789");
    bool whole = !*layer || !strcmp(layer, "*") || !strcmp(layer, ".*");
    return whole ? IN_ATTENTION | IN_OUTPUT | IN_MLP | IN_EXPERTS | IN_SHARED : 0;
}

/* One layer where the name has a number, else every one. */
int64_t ft__quantized_layers(const char *name)
{
    const char *layer = strstr(name, "layers.");
    return layer && layer[strlen("layers.")] >= '0' && layer[strlen("layers.")] <= '9' ? 1 : FT_EVERY_LAYER;
}
