/* site.c: sites of builders' nodes and blocks, from the lists; and those that a graph has of its own.
 *
 * A graph's own come from the names of a file and of fused kernels: a few dozen of a compiled model, thousands of an
 * ONNX file. Each is there once, so that equal addresses mean one module; a table of hashes finds it. */
#include "graph/site.h"

#include <string.h>

#include "base/file.h"
#include "graph/graph.h"

#define MODULE false
#define LAYER true
const ft_site_info ft__sites[FT_SITE_COUNT] = {
#define FT_SITE(which, name, of, caller) {name, &ft__sites[FT_SITE_##of], FT_SITE_##which, caller},
#include "graph/site_list.h"
#undef FT_SITE
};
#undef MODULE
#undef LAYER

const ft_block_info ft__block_infos[FT_BLOCK_AT_COUNT] = {
#define FT_BLOCK_ENTRY(which, name, kind, trunk) {name, FT_BLOCK_##kind, FT_TRUNK_##trunk},
#include "graph/block_list.h"
#undef FT_BLOCK_ENTRY
};

static ft_at *slot(ft_at *table, uint32_t room, const char *name)
{
    uint32_t at = (uint32_t)ft__hash(name, strlen(name), 0) & (room - 1);
    while (table[at] && strcmp(table[at]->name, name) != 0) at = (at + 1) & (room - 1);
    return &table[at];
}

/* Twice as large when it is half full. */
static bool widen(ft_graph *g)
{
    if (g->site_room > 2 * g->site_count) return true;
    uint32_t room = g->site_room ? 2 * g->site_room : 64;
    ft_at *wider = ft__arena_array(g->arena, room, sizeof *wider);
    if (!wider) return false;
    for (uint32_t i = 0; i < g->site_room; i++)
        if (g->sites[i]) *slot(wider, room, g->sites[i]->name) = g->sites[i];
    g->sites = wider;
    g->site_room = room;
    return true;
}

ft_at ft__graph_site_find(const ft_graph *g, const char *name)
{
    return g->site_room ? *slot(g->sites, g->site_room, name) : NULL;
}

ft_at ft__graph_site(ft_graph *g, const ft_site_info *like)
{
    if (!widen(g)) return NULL;
    ft_at *at = slot(g->sites, g->site_room, like->name);
    if (*at) return *at;
    g->site_count++;
    if (like == &ft__sites[like->site]) return *at = like;
    size_t length = strlen(like->name);
    char *name = ft__arena_copy(g->arena, like->name, length);
    ft_site_info *fresh = ft__arena_array(g->arena, 1, sizeof *fresh);
    if (!name || !fresh) {
        g->site_count--;
        return NULL;
    }
    *fresh = *like;
    fresh->name = name;
    if (!fresh->of) fresh->of = fresh;
    return *at = fresh;
}
