/* names.c: what was made so far, by name. A name may be given again: the latest counts. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"

enum { MOST_NAMES = 1 << 20 };

/* FNV-1a (Fowler, Noll, Vo). */
static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

const char *ft__graphfile_text(ft_graph_reader *r, const char *text)
{
    const char *copy = ft__arena_copy(ft__graphfile_build(r)->g->arena, text, strlen(text));
    if (!copy) ft__build_fail(ft__graphfile_build(r), FT_E_MEMORY, "out of memory");
    return copy ? copy : "";
}

ft_named *ft__graphfile_find(ft_graph_reader *r, const char *name)
{
    if (!r->bucket_count) return NULL;
    uint32_t h = hash_of(name);
    for (int32_t i = r->buckets[h & (uint32_t)(r->bucket_count - 1)]; i >= 0; i = r->names[i].before)
        if (r->names[i].hash == h && !strcmp(r->names[i].name, name)) return &r->names[i];
    return NULL;
}

static void link_in(ft_graph_reader *r, int32_t i)
{
    int32_t *bucket = &r->buckets[r->names[i].hash & (uint32_t)(r->bucket_count - 1)];
    r->names[i].before = *bucket;
    *bucket = i;
}

/* Room for one more, and as many buckets as entries. */
static bool widen(ft_graph_reader *r)
{
    if (r->count < r->room) return true;
    ft_arena *arena = ft__graphfile_build(r)->g->arena;
    int32_t room = r->room ? 2 * r->room : 128;
    bool allowed = room <= MOST_NAMES;
    ft_named *names = allowed ? ft__arena_array(arena, (size_t)room, sizeof *names) : NULL;
    int32_t *buckets = allowed ? ft__arena_array(arena, (size_t)room, sizeof *buckets) : NULL;
    if (!names || !buckets) {
        if (allowed)
            ft__build_fail(ft__graphfile_build(r), FT_E_MEMORY, "out of memory");
        else
            ft__build_fail(ft__graphfile_build(r), FT_E_MEMORY, "a graph of more than %d tensors", MOST_NAMES);
        return false;
    }
    if (r->count) memcpy(names, r->names, (size_t)r->count * sizeof *names);
    for (int32_t i = 0; i < room; i++) buckets[i] = -1;
    r->names = names;
    r->buckets = buckets;
    r->room = r->bucket_count = room;
    for (int32_t i = 0; i < r->count; i++) link_in(r, i);
    return true;
}

void ft__graphfile_keep_named(ft_graph_reader *r, const char *name, const ft_named *n)
{
    ft_named fresh = *n; /* may point into the array that grows */
    if (ft__graphfile_failed(r) || fresh.ref == FT_NONE || !widen(r)) return;
    fresh.name = name;
    fresh.hash = hash_of(name);
    r->names[r->count] = fresh;
    link_in(r, r->count++);
}

void ft__graphfile_keep(ft_graph_reader *r, const char *name, ft_ref ref, int dims, const int64_t *dim)
{
    ft_named n = ft__graphfile_fresh(ref, dims, dim);
    ft__graphfile_keep_named(r, name, &n);
}

const char *ft__graphfile_nearest(ft_graph_reader *r, const char *name)
{
    const char **all = malloc(((size_t)r->count + 1) * sizeof *all), *near = NULL;
    for (int32_t i = 0; all && i < r->count; i++) all[i] = r->names[i].name;
    if (all) near = ft__nearest(name, all, (size_t)r->count);
    free((void *)(uintptr_t)all);
    return near;
}
