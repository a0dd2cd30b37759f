/* arena.c: memory that lives as long as one request.
 *
 * Blocks in a chain, each twice as large as all before it up to 8 MiB (larger only for a single larger piece); a piece
 * is a bump of the newest block's cursor. The largest block survives a reset, so that a thread that answers a million
 * requests, of a kernel's few KiB or of a model's MiB, soon has all it needs in one block: pages that are given back
 * and asked for again cost more than the bytes written to them. Blocks beyond 16 MiB were for the absurd and go.
 * Memory is zeroed when it is handed out rather than when the block is made: after a reset the block holds the last
 * request's bytes.
 *
 * Left out: freeing single pieces, and threads. An arena belongs to one request and thus to one thread.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 8192, LARGEST_STEP = 8 << 20, LARGEST_KEPT = 16 << 20 };

typedef struct block {
    struct block *older;
    size_t room, used;
    alignas(ALIGNMENT) unsigned char bytes[];
} block;

struct ft_arena {
    block *newest;
    size_t cap, held; /* held: room of all blocks; cap bounds what callers asked for */
    size_t given;
    bool full; /* a piece was refused since the last reset because of the cap */
};

static block *block_new(size_t room)
{
    if (room > SIZE_MAX - sizeof(block)) return NULL;
    block *b = malloc(sizeof *b + room);
    if (!b) return NULL;
    b->older = NULL;
    b->room = room;
    b->used = 0;
    return b;
}

ft_arena *ft__arena_new(size_t cap_bytes)
{
    ft_arena *a = malloc(sizeof *a);
    if (!a) return NULL;
    a->newest = block_new(FIRST_BLOCK);
    if (!a->newest) {
        free(a);
        return NULL;
    }
    a->cap = cap_bytes ? cap_bytes : SIZE_MAX;
    a->held = FIRST_BLOCK;
    a->given = 0;
    a->full = false;
    return a;
}

/* Frees all but the largest block that may be kept; the first one always may. */
static void shrink(ft_arena *a)
{
    block *kept = NULL;
    for (block *b = a->newest, *older; b; b = older) {
        older = b->older;
        bool may = !older || b->room <= LARGEST_KEPT;
        block *gone = b;
        if (may && (!kept || b->room > kept->room)) {
            gone = kept;
            kept = b;
        }
        free(gone);
    }
    if (!kept) return; /* an arena always has its first block */
    kept->older = NULL;
    a->newest = kept;
}

void ft__arena_free(ft_arena *a)
{
    if (!a) return;
    shrink(a);
    free(a->newest);
    free(a);
}

void ft__arena_reset(ft_arena *a)
{
    if (!a) return;
    shrink(a);
    a->newest->used = 0;
    a->held = a->newest->room;
    a->given = 0;
    a->full = false;
}

bool ft__arena_full(const ft_arena *a) { return a && a->full; }

static void *take(ft_arena *a, size_t bytes, size_t *taken)
{
    if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
    /* An empty piece still gets an address of its own. */
    size_t size = ((bytes ? bytes : 1) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size > a->cap - a->given) {
        a->full = true;
        return NULL;
    }
    block *b = a->newest;
    if (size > b->room - b->used) {
        size_t room = a->held < LARGEST_STEP ? a->held * 2 : LARGEST_STEP;
        if (room < size) room = size;
        b = block_new(room);
        if (!b) return NULL;
        b->older = a->newest;
        a->newest = b;
        a->held += room;
    }
    void *piece = b->bytes + b->used;
    b->used += size;
    a->given += size;
    *taken = size;
    return piece;
}

void *ft__arena_alloc(ft_arena *a, size_t bytes)
{
    size_t size;
    void *piece = take(a, bytes, &size);
    return piece ? memset(piece, 0, size) : NULL;
}

void *ft__arena_bare(ft_arena *a, size_t count, size_t size)
{
    size_t taken;
    if (size && count > SIZE_MAX / size) return NULL;
    return take(a, count * size, &taken);
}

void *ft__arena_array(ft_arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) return NULL;
    return ft__arena_alloc(a, count * size);
}

char *ft__arena_copy(ft_arena *a, const char *text, size_t length)
{
    if (length == SIZE_MAX) return NULL;
    char *copy = ft__arena_alloc(a, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}
