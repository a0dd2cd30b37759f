/* Records read from files: their checksum, and figures that no fit writes. */
#include "kernel/predictor_check.h"

#include <math.h>
#include <string.h>

/* Four words a step in lanes that do not wait for each other, so that megabytes take a millisecond. */
uint64_t ft__records_checksum(const unsigned char *at, size_t length)
{
    uint64_t lane[4] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu, 0x2545f4914f6cdd1du}, word[4];
    size_t steps = length / sizeof word;
    for (size_t i = 0; i < steps; i++) {
        memcpy(word, at + sizeof word * i, sizeof word);
        for (int l = 0; l < 4; l++) {
            lane[l] = (lane[l] ^ word[l]) * 0xff51afd7ed558ccdu;
            lane[l] ^= lane[l] >> 32;
        }
    }
    memset(word, 0, sizeof word);
    memcpy(word, at + sizeof word * steps, length - sizeof word * steps);
    uint64_t h = length;
    for (int l = 0; l < 4; l++) {
        h = (h ^ lane[l] ^ word[l]) * 0xc4ceb9fe1a85ec53u;
        h ^= h >> 29;
    }
    return h;
}

static bool terminated(const char *text, size_t room) { return memchr(text, 0, room) != NULL; }

static bool finite_all(const float *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(at[i])) return false;
    return true;
}

/* Spreads grow with the share of cases they cover. */
static bool spreads_sound(const float spread[FT_KIN_LEVELS][FT_QUANTILES])
{
    for (int k = 0; k < FT_KIN_LEVELS; k++)
        for (int q = 0; q < FT_QUANTILES; q++)
            if (!(spread[k][q] >= (q ? spread[k][q - 1] : 0) && spread[k][q] < 1e6f)) return false;
    return true;
}

/* Constants that physics can be computed with. Those of a family this program knows lie within its bounds, give or take
 * the factor by which a later version may have moved a bound; a constant that did not exist yet when the file was made
 * is 0 and fails here instead of making a wrong forecast. The linear baseline's coefficients are only not negative. */
static bool constants_sound(const ft_expert *e)
{
    int at = ft__family_find(e->family);
    for (int i = 0; i < FT_MAX_THETA; i++)
        if (!(e->theta[i] >= 0 && e->theta[i] < 1e9)) return false;
    for (int i = 0; at >= 0 && i < ft__families[at]->parameter_count; i++) {
        const ft_parameter *p = &ft__families[at]->parameters[i];
        if (e->theta[i] < p->low / 2 || e->theta[i] > p->high * 2) return false;
    }
    return true;
}

bool ft__expert_sound(const ft_expert *e, size_t trees)
{
    if (!terminated(e->family, sizeof e->family) || !terminated(e->variant, sizeof e->variant) ||
        !terminated(e->gpu, sizeof e->gpu) || !terminated(e->generation, sizeof e->generation))
        return false;
    if (e->tree_first > trees || e->tree_count > trees - e->tree_first) return false;
    if (e->sigma_first > trees || e->sigma_count > trees - e->sigma_first) return false;
    for (int k = 0; k < FT_KIN_LEVELS; k++)
        if (!(e->weight[k] >= 0 && e->weight[k] <= 1 && fabsf(e->bias[k]) < 10)) return false;
    return fabsf(e->sigma_base) < 50 && finite_all(e->mape, FT_KIN_LEVELS) &&
           finite_all(e->feature_low, FT_MAX_FEATURES) && finite_all(e->feature_high, FT_MAX_FEATURES) &&
           spreads_sound(e->spread_low) && spreads_sound(e->spread_high) && constants_sound(e);
}

bool ft__tree_sound(const ft_tree *t)
{
    bool sound = t->shift <= FT_LEAF_SHIFT_MAX;
    for (int d = 0; d < FT_TREE_DEPTH; d++) sound = sound && t->feature[d] < FT_MAX_FEATURES;
    return sound;
}

/* As many cuts as there are, ascending in every feature. */
bool ft__cut_table_sound(const ft_forests *f, size_t table)
{
    const ft_cut_table *t = &f->tables[table];
    uint64_t at = t->first;
    for (int i = 0; i < FT_MAX_FEATURES; i++) {
        if (t->count[i] > FT_MAX_CUTS || at + t->count[i] > f->cut_count) return false;
        for (int c = 1; c < t->count[i]; c++)
            if (f->cuts[at + (uint64_t)c] <= f->cuts[at + (uint64_t)c - 1]) return false;
        at += t->count[i];
    }
    return true;
}

bool ft__tests_sound(const ft_forests *f, size_t tree)
{
    const ft_tests *t = &f->tests[tree];
    bool sound = t->shift <= FT_LEAF_SHIFT_MAX && !t->pad && t->table < f->table_count;
    for (int d = 0; d < FT_TREE_DEPTH && sound; d++)
        sound = t->feature[d] < FT_MAX_FEATURES &&
                (t->cut[d] == FT_CUT_NEVER || t->cut[d] < f->tables[t->table].count[t->feature[d]]);
    return sound;
}

static bool of_table(const ft_forests *f, size_t first, size_t count, uint16_t table)
{
    for (size_t i = first; i < first + count; i++)
        if (f->tests[i].table != table) return false;
    return true;
}

bool ft__forest_of_one_table(const ft_forests *f, const ft_expert *e)
{
    if (!e->tree_count && !e->sigma_count) return true;
    uint16_t table = f->tests[e->tree_count ? e->tree_first : e->sigma_first].table;
    return of_table(f, e->tree_first, e->tree_count, table) && of_table(f, e->sigma_first, e->sigma_count, table);
}
