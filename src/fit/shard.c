/* shard.c: a part of the kinds of kernels.
 *
 * They know nothing of each other, so that each may be fitted elsewhere. The largest are dealt first. */
#include <stdlib.h>

#include "fit/cell.h"

static size_t rows_of(const ft_cell *cell)
{
    size_t count = 0;
    for (int g = 0; g < cell->gpu_count; g++) count += cell->gpus[g].count;
    return count;
}

ft_status ft__cells_keep(ft_cell *cells, size_t *count, int64_t shard, int64_t shards, ft_error *err)
{
    if (!shards || !*count) return FT_OK;
    size_t kept = 0, *rank = calloc(*count, sizeof *rank);
    if (!rank) return ft__no_memory(err);
    for (size_t c = 0; c < *count; c++)
        for (size_t other = 0; other < *count; other++) {
            size_t mine = rows_of(&cells[c]), theirs = rows_of(&cells[other]);
            rank[c] += theirs > mine || (theirs == mine && other < c);
        }
    for (size_t c = 0; c < *count; c++) {
        if (rank[c] % (size_t)shards == (size_t)shard - 1)
            cells[kept++] = cells[c];
        else
            ft__cell_free(&cells[c]);
    }
    free(rank);
    *count = kept;
    return kept ? FT_OK
                : ft__fail(err, FT_E_RANGE, "nothing is left for this shard: fewer kinds of kernels than shards");
}
