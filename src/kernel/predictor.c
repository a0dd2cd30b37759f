/* Reading and asking a predictor file.
 *
 * The file is used in place (predictor_file.h has its layout), and a checksum over everything behind the header makes
 * flipped bytes an error instead of a wrong forecast. Every index is checked once on reading, so that forecasting needs
 * no checks. */
#include "kernel/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernel/calibration.h"
#include "kernel/embedded_predictor.h"
#include "kernel/expert_constants.h"
#include "kernel/predictor_check.h"
#include "kernel/predictor_file.h"

const double ft__quantile_levels[FT_QUANTILES] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99};

/* Cells of families or variants this program does not know keep an empty range. Records of one cell stand together as
 * `fit` writes them; in a file made otherwise the range just holds others in between. */
void ft__predictor_index(ft_predictor *p)
{
    for (uint32_t i = 0; i < p->expert_count; i++) {
        const ft_expert *e = &p->experts[i];
        int f = ft__family_find(e->family);
        for (int v = 0; f >= 0 && v < ft__families[f]->variant_count; v++) {
            if (strcmp(ft__families[f]->variant_name(v), e->variant)) continue;
            if (p->cell[f][v].end == 0) p->cell[f][v].first = i;
            p->cell[f][v].end = i + 1;
        }
    }
}

static ft_status check_header(const ft_predictor_header *h, size_t length, const char *where, ft_error *err)
{
    if (memcmp(h->magic, FT_PREDICTOR_MAGIC, sizeof h->magic))
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "not a predictor file (made by `foretell fit`)");
    if (h->version != FT_PREDICTOR_VERSION)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0,
                           "predictor version %u, this program reads version %d: fit it again with `foretell fit`",
                           h->version, FT_PREDICTOR_VERSION);
    if (h->length != length)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "truncated or extended: %zu bytes, its header says %llu",
                           length, (unsigned long long)h->length);
    if (h->header_bytes != sizeof *h || h->expert_bytes != sizeof(ft_expert) ||
        h->tree_bytes != sizeof(ft_leaves) + sizeof(ft_tests))
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged header: record sizes do not match this version");
    return FT_OK;
}

/* Where everything stands; NULL: the counts do not add up to the length. */
static const unsigned char *lay_over(const ft_predictor_header *h, const unsigned char *at, ft_predictor *out)
{
    const struct {
        uint64_t count, bytes;
    } parts[] = {{h->tree_count, sizeof(ft_leaves)},
                 {h->tree_count, sizeof(ft_tests)},
                 {h->expert_count, sizeof(ft_expert)},
                 {h->table_count, sizeof(ft_cut_table)},
                 {h->cut_count, sizeof(uint32_t)}};
    enum { PARTS = sizeof parts / sizeof *parts };
    const void *part[PARTS];
    uint64_t need = sizeof *h;
    for (int i = 0; i < PARTS; i++) {
        part[i] = at + (need <= h->length ? need : 0);
        need += parts[i].count * parts[i].bytes; /* 32-bit counts of small records: no overflow */
    }
    if (need > h->length || h->meta_length != h->length - need) return NULL;
    out->trees = (ft_forests){.leaves = part[0],
                              .tests = part[1],
                              .tables = part[3],
                              .cuts = part[4],
                              .count = h->tree_count,
                              .table_count = h->table_count,
                              .cut_count = h->cut_count};
    out->experts = part[2];
    out->expert_count = h->expert_count;
    out->meta = (const char *)at + need;
    out->meta_length = (size_t)h->meta_length;
    out->identity = h->checksum;
    return at;
}

static ft_status check_forests(const ft_predictor *p, const char *where, ft_error *err)
{
    for (size_t i = 0; i < p->trees.table_count; i++)
        if (!ft__cut_table_sound(&p->trees, i))
            return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged: table %zu of cuts is impossible", i);
    for (size_t i = 0; i < p->trees.count; i++)
        if (!ft__tests_sound(&p->trees, i))
            return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged: tree %zu is impossible", i);
    for (size_t i = 0; i < p->expert_count; i++)
        if (!ft__forest_of_one_table(&p->trees, &p->experts[i]))
            return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged: trees of record %zu have several tables", i);
    return FT_OK;
}

static ft_status read_records(const void *data, size_t length, const char *where, bool trusted, ft_predictor *out,
                              ft_error *err)
{
    const unsigned char *at = data;
    ft_predictor_header h;
    memset(out, 0, sizeof *out);
    if (length < sizeof h)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "not a predictor: %zu bytes are less than its header",
                           length);
    memcpy(&h, at, sizeof h);
    FT_TRY(check_header(&h, length, where, err));
    if (!lay_over(&h, at, out))
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged header: counts do not add up to the length");
    if (!trusted && ft__records_checksum(at + sizeof h, length - sizeof h) != h.checksum)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "checksum mismatch: the file is damaged");
    for (size_t i = 0; i < out->expert_count; i++)
        if (!ft__expert_sound(&out->experts[i], out->trees.count))
            return ft__fail_at(
                err, FT_E_FORMAT, where, 0, 0,
                "damaged, or made for other models than this program's: record %zu holds impossible figures; "
                "fit it again with `foretell fit`",
                i);
    ft__predictor_index(out);
    return trusted ? FT_OK : check_forests(out, where, err);
}

ft_status ft__predictor_read(const void *data, size_t length, const char *where, ft_predictor *out, ft_error *err)
{
    return read_records(data, length, where, false, out, err);
}

static bool is_file(const char *which)
{
    return which && strcmp(which, "roofline") && strcmp(which, "linear") && strncmp(which, "scaling:", 8);
}

static ft_status open_any(const char *which, const void *data, size_t length, const char *where, bool trusted,
                          ft_predictor **out, ft_error *err)
{
    ft_predictor *p = calloc(1, sizeof *p);
    if (!p) return ft__no_memory(err);
    ft_status s = FT_OK;
    bool from_file = is_file(which);
    if (from_file) {
        where = which;
        s = ft__file_map(which, &data, &length, err);
    }
    if (s == FT_OK) {
        /* The one compiled in is as trustworthy as the code around it; touching all its pages would only cost time. */
        s = read_records(data, length, where, trusted && !from_file, p, err);
        if (from_file) {
            p->mapping = data;
            p->mapping_length = length;
        }
    }
    if (s == FT_OK && which && !from_file) {
        p->mode = which[0] == 'r' ? FT_PREDICT_ROOFLINE : which[0] == 'l' ? FT_PREDICT_LINEAR : FT_PREDICT_SCALING;
        if (p->mode == FT_PREDICT_SCALING) {
            size_t room = sizeof p->scaling_from;
            if (strlen(which + 8) >= room || !which[8])
                s = ft__fail(err, FT_E_NAME, "scaling: needs the name of a measured GPU, as in scaling:v100_pcie_32gb");
            else
                memcpy(p->scaling_from, which + 8, strlen(which + 8) + 1);
        }
    }
    if (s != FT_OK) {
        ft__predictor_close(p);
        return s;
    }
    *out = p;
    return FT_OK;
}

ft_status ft__predictor_open(const char *which, ft_predictor **out, ft_error *err)
{
    size_t length = (size_t)(ft__default_predictor_end - ft__default_predictor);
    return open_any(which, ft__default_predictor, length, "built-in predictor", true, out, err);
}

ft_status ft__predictor_open_bytes(const char *which, const void *data, size_t length, ft_predictor **out,
                                   ft_error *err)
{
    if (is_file(which))
        return ft__fail_at(err, FT_E_USAGE, "predictor", 0, 0,
                           "a predictor is bytes or the file '%s', not both: leave one of them out", which);
    if ((uintptr_t)data % _Alignof(ft_expert) != 0)
        return ft__fail_at(err, FT_E_USAGE, "predictor_data", 0, 0,
                           "the bytes of a predictor begin at an address that %zu divides, as malloc gives it",
                           _Alignof(ft_expert));
    return open_any(which, data, length, "the predictor's bytes", false, out, err);
}

void ft__predictor_close(ft_predictor *p)
{
    if (!p) return;
    ft__calibration_close(p->calibration);
    if (p->mapping) ft__file_unmap(p->mapping, p->mapping_length);
    free(p);
}

double ft__device_balance(const ft_device *device)
{
    double peak = device->peak_tflops[FT_FP16] > 0 ? device->peak_tflops[FT_FP16] : device->peak_tflops[FT_FP32];
    return peak * 1e3 / device->memory_gbps;
}

/* Of several siblings the one most alike (the balance of arithmetic to bandwidth decides which roof holds a kernel),
 * and of those the one that was measured most. */
static bool closer(const ft_expert *a, const ft_expert *b, double balance)
{
    if (!b) return true;
    double da = fabs(log(fmax((double)a->balance, 1e-3) / balance)),
           db = fabs(log(fmax((double)b->balance, 1e-3) / balance));
    return da < db - FT_K_EXPERT_ALIKE || (da < db + FT_K_EXPERT_ALIKE && a->rows > b->rows);
}

/* The generation whose measurements stand for the device's own where it has none; NULL: nobody's. */
static const char *alike(const char *family, const ft_device *device)
{
    for (int i = 0; i < FT_K_EXPERT_ALIKE_GENERATIONS_COUNT; i++) {
        const struct ft__k_expert_alike_generations *row = &ft__k_expert_alike_generations[i];
        if (!strcmp(row->family, family) && !strcmp(row->generation, device->generation)) return row->like;
    }
    return NULL;
}

static const ft_expert *find(const ft_predictor *p, int family, int variant, const ft_device *device,
                             ft_kinship *kinship)
{
    const ft_expert *sibling = NULL, *cousin = NULL, *world = NULL;
    const char *family_name = ft__families[family]->name, *variant_name = ft__families[family]->variant_name(variant);
    const char *like = alike(family_name, device);
    for (uint32_t i = p->cell[family][variant].first; i < p->cell[family][variant].end; i++) {
        const ft_expert *e = &p->experts[i];
        if (strcmp(e->variant, variant_name) || strcmp(e->family, family_name)) continue;
        if (!strcmp(e->gpu, device->name)) {
            *kinship = FT_KIN_SELF;
            return e;
        }
        if (e->gpu[0] == '*')
            world = e;
        else if (!strcmp(e->generation, device->generation))
            sibling = closer(e, sibling, ft__device_balance(device)) ? e : sibling;
        else if (like && !strcmp(e->generation, like))
            cousin = closer(e, cousin, ft__device_balance(device)) ? e : cousin;
    }
    if (!sibling) sibling = cousin;
    *kinship = sibling ? FT_KIN_SIBLING : FT_KIN_WORLD;
    return sibling ? sibling : world;
}

const ft_expert *ft__predictor_expert(const ft_predictor *p, const ft_family *family, int variant,
                                      const ft_device *device, ft_kinship *kinship)
{
    /* A relative's measurement of another variant (a sibling's fp8 for fp4) beats nothing, never a closer relation. A
     * chain of fallbacks is at most as long as there are variants, even one that should run in a circle. */
    int at = ft__family_find(family->name);
    for (int v = variant, steps = 0; at >= 0 && v >= 0 && steps < family->variant_count; steps++) {
        const ft_calibrated *measured = ft__calibrated(p, at, v, device);
        const ft_expert *e = measured ? &measured->expert : find(p, at, v, device, kinship);
        if (measured) *kinship = ft__expert_kinship(&measured->expert);
        if (e) {
            if (v != variant && *kinship == FT_KIN_SELF) *kinship = FT_KIN_SIBLING;
            return e;
        }
        v = family->variant_fallback ? family->variant_fallback(v) : -1;
    }
    *kinship = FT_KIN_WORLD;
    return NULL;
}

const double *ft__predictor_lent(const ft_predictor *p, const ft_family *family, int variant, const ft_device *device)
{
    int at = ft__family_find(family->name), lent = family->variant_lent ? family->variant_lent(variant) : -1;
    if (at < 0 || lent < 0) return NULL;
    ft_kinship kinship;
    const ft_expert *e = find(p, at, lent, device, &kinship);
    return e && kinship != FT_KIN_WORLD ? e->theta : NULL;
}

double ft__expert_stretch(const ft_expert *expert, const float *feature, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double low = (double)expert->feature_low[i], high = (double)expert->feature_high[i], x = (double)feature[i];
        double beyond = x > high ? x - high : low - x;
        if (beyond > 0) sum += high > low ? fmin(beyond / (high - low), 1) : FT_K_EXPERT_UNSEEN_FLAG;
    }
    return sum;
}
