/* site.c: what names in graph files and ONNX files mean. The only place where a name decides (docs/graph.md has the
 * rules for those who write such files).
 *
 * Nodes. A name of the list that builders use (graph/site_list.h) is that site. Another one, "attn.k_proj.scale", has
 * the site of the longest listed name that it continues behind a dot; one with "repeat" in it repeats keys for grouped
 * queries. What stands before the first dot is the module that it is part of, listed or not. Norms, sums and dropout of
 * a module ("mlp.norm", "mlp.residual") are issued by the layer, a head by the model.
 *
 * Blocks. "head" is the head. A part that begins with "layers" makes a row of layers: of the model where the name
 * begins with it, otherwise of what stands before the first dot ("encoder.layers"). */
#include "import/site.h"

#include <string.h>

static ft_at listed(const char *name, size_t length)
{
    for (int i = 0; i < FT_SITE_COUNT; i++)
        if (*ft__sites[i].name == *name && !strncmp(ft__sites[i].name, name, length) && !ft__sites[i].name[length])
            return &ft__sites[i];
    return NULL;
}

/* The longest listed name that it continues behind a dot. */
static ft_site continued(const char *name)
{
    for (size_t length = strlen(name); length > 0; length--) {
        if (name[length] != '.') continue;
        ft_at at = listed(name, length);
        if (at) return at->site;
    }
    return FT_SITE_NONE;
}

static bool outer(const char *name)
{
    static const char *const own[] = {"norm", "post_norm", "residual", "dropout"};
    const char *dot = strchr(name, '.');
    if (!strncmp(name, "lm_head", 7) || !strcmp(name, "model")) return true;
    for (size_t i = 0; dot && i < sizeof own / sizeof *own; i++)
        if (!strcmp(dot + 1, own[i])) return true;
    return false;
}

ft_at ft__import_site(ft_graph *g, const char *name)
{
    ft_at known = ft__graph_site_find(g, name);
    if (known) return known;
    known = listed(name, strlen(name));
    if (known) return ft__graph_site(g, known);
    ft_site_info fresh = {.name = name, .site = continued(name), .outer = outer(name)};
    if (strstr(name, "repeat")) fresh.site = FT_SITE_ATTN_REPEAT_KV;
    const char *dot = strchr(name, '.');
    if (dot) {
        char *module = ft__arena_copy(g->arena, name, (size_t)(dot - name));
        fresh.of = module ? ft__import_site(g, module) : NULL;
        if (!fresh.of) return NULL;
    }
    return ft__graph_site(g, &fresh);
}

static bool has_layers(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '.')) {
        if (*part == '.') part++;
        if (!strncmp(part, "layers", 6)) return true;
    }
    return false;
}

/* Blocks of one function have the same word before the first dot. */
static int32_t trunk_of(const ft_graph *g, const char *name)
{
    static const struct {
        const char *word;
        ft_trunk trunk;
    } known[] = {{"encoder.", FT_TRUNK_ENCODER},
                 {"decoder.", FT_TRUNK_DECODER},
                 {"vision.", FT_TRUNK_VISION},
                 {"text.", FT_TRUNK_TEXT}};
    const char *dot = strchr(name, '.');
    if (!dot || !strncmp(name, "layers", 6)) return FT_TRUNK_MODEL;
    const size_t length = (size_t)(dot - name) + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].word, length)) return (int32_t)known[i].trunk;
    for (int32_t b = 0; b < g->block_count; b++)
        if (!strncmp(name, g->blocks[b].name, length)) return g->blocks[b].trunk;
    return (int32_t)FT_TRUNK_COUNT + g->block_count;
}

ft_block_info ft__import_block(const ft_graph *g, const char *name)
{
    ft_block_info info = {.name = name, .kind = FT_BLOCK_OTHER, .trunk = trunk_of(g, name)};
    if (has_layers(name)) info.kind = FT_BLOCK_LAYERS;
    if (!strcmp(name, "head")) info.kind = FT_BLOCK_HEAD;
    return info;
}

ft_expert_part ft__import_expert(const char *name)
{
    if (!strcmp(name, "experts.bias")) return FT_EXPERT_BIAS;
    return strncmp(name, "experts.", 8) ? FT_NO_EXPERT : FT_EXPERT_WEIGHT;
}
