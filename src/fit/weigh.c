/* weigh.c: what each row of a cell counts, which are left out where there are too many, and their order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/cell.h"
#include "fit/learning_constants.h"

/* Rows of one GPU from two protocols (our own and an engine's) get the same say: ours are fewer. */
static void balance_sources(ft_cell *cell, ft_rows *rows)
{
    for (int g = 0; g < cell->gpu_count; g++) {
        double own = 0, engine = 0;
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            const ft_row *r = &rows->at[cell->gpus[g].index[i]];
            own += r->source == FT_ROWS_OWN;
            engine += r->source == FT_ROWS_ENGINE;
        }
        if (own <= 0 || engine <= own) continue;
        float weight = (float)fmin(FT_K_LEARNING_ENGINE_MOST, engine / own);
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            ft_row *r = &rows->at[cell->gpus[g].index[i]];
            if (r->source == FT_ROWS_OWN || r->source == FT_ROWS_POINTS) r->weight = weight;
        }
    }
}

/* Drawn products are many, and each is known less well than a row of our tables: it counts a share of one. */
static void lower_drawn(ft_cell *cell, ft_rows *rows)
{
    for (int g = 0; g < cell->gpu_count; g++) {
        float own = 1;
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            const ft_row *r = &rows->at[cell->gpus[g].index[i]];
            if (r->source == FT_ROWS_OWN) own = r->weight;
        }
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            ft_row *r = &rows->at[cell->gpus[g].index[i]];
            if (r->source == FT_ROWS_DRAWN) r->weight = (float)FT_K_LEARNING_DRAWN_WEIGHT * own;
        }
    }
}

/* Profiled layers are many: together they count at most so many times the rows of our tables, where those are enough to
 * stand for themselves. */
static void lower_profiled(ft_cell *cell, ft_rows *rows)
{
    for (int g = 0; g < cell->gpu_count; g++) {
        const struct ft__k_learning_profiled_most *most = &ft__k_learning_profiled_most;
        double own = 0, profiled = 0, count = 0;
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            const ft_row *r = &rows->at[cell->gpus[g].index[i]];
            count += r->source == FT_ROWS_OWN;
            own += r->source == FT_ROWS_OWN ? (double)r->weight : 0;
            profiled += r->source == FT_ROWS_PROFILED ? (double)r->weight : 0;
        }
        if (count < most->from || profiled <= most->times * own) continue;
        float share = (float)(most->times * own / profiled);
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            ft_row *r = &rows->at[cell->gpus[g].index[i]];
            if (r->source == FT_ROWS_PROFILED) r->weight *= share;
        }
    }
}

/* Rows from inside models are a handful beside a table of thousands, and what whole models are asked for. */
static void raise_models(ft_cell *cell, ft_rows *rows)
{
    const double share = FT_K_LEARNING_MODEL_SHARE, most = FT_K_LEARNING_MODEL_MOST;
    for (int g = 0; g < cell->gpu_count; g++) {
        double inside = 0, others = 0;
        for (size_t i = 0; i < cell->gpus[g].count; i++)
            *(rows->at[cell->gpus[g].index[i]].source == FT_ROWS_MODEL ? &inside : &others) += 1;
        if (inside <= 0 || others <= inside / share) continue;
        float weight = (float)fmin(most, share * others / inside);
        for (size_t i = 0; i < cell->gpus[g].count; i++) {
            ft_row *r = &rows->at[cell->gpus[g].index[i]];
            if (r->source == FT_ROWS_MODEL) r->weight = weight;
        }
    }
}

/* Rows of tables, those that only teach, those of models. */
enum { TABLE, TEACHES, MODEL, RANKS };
static int rank(uint8_t source)
{
    if (source == FT_ROWS_MODEL) return MODEL;
    bool teaches = source == FT_ROWS_PROFILED || source == FT_ROWS_POINTS || source == FT_ROWS_UNSAID ||
                   source == FT_ROWS_DRAWN;
    return teaches ? TEACHES : TABLE;
}

/* More rows of tables and models than a cell takes: every row's hash decides; our own and those of models always stay.
 */
static void thin(ft_cell_gpu *g, const ft_rows *rows)
{
    size_t kept = 0, count = 0;
    for (size_t i = 0; i < g->count; i++) count += rank(rows->at[g->index[i]].source) != TEACHES;
    if (count <= FT_CELL_MAX_ROWS) return;
    uint64_t threshold = (uint64_t)FT_CELL_MAX_ROWS * 4294967296u / count;
    for (size_t i = 0; i < g->count; i++) {
        uint32_t h = rows->at[g->index[i]].number;
        h = (h ^ (h >> 16)) * 2246822519u;
        h = (h ^ (h >> 13)) * 3266489917u;
        uint8_t source = rows->at[g->index[i]].source;
        if ((source != FT_ROWS_EAGER && source != FT_ROWS_ENGINE) || (h ^ (h >> 16)) < threshold)
            g->index[kept++] = g->index[i];
    }
    g->count = kept;
}

static ft_status part(ft_cell_gpu *g, const ft_rows *rows, ft_error *err)
{
    uint32_t *sorted = malloc((g->count + 1) * sizeof *sorted);
    if (!sorted) return ft__no_memory(err);
    size_t n = 0, end[RANKS];
    for (int k = TABLE; k < RANKS; k++) {
        for (size_t i = 0; i < g->count; i++)
            if (rank(rows->at[g->index[i]].source) == k) sorted[n++] = g->index[i];
        end[k] = n;
    }
    g->tables = end[TABLE];
    g->forest = end[TEACHES];
    memcpy(g->index, sorted, n * sizeof *sorted);
    free(sorted);
    return FT_OK;
}

ft_status ft__cell_weigh(ft_cell *cell, ft_rows *rows, ft_error *err)
{
    balance_sources(cell, rows);
    lower_drawn(cell, rows);
    lower_profiled(cell, rows);
    raise_models(cell, rows);
    for (int g = 0; g < cell->gpu_count; g++) {
        thin(&cell->gpus[g], rows);
        FT_TRY(part(&cell->gpus[g], rows, err));
    }
    return FT_OK;
}
