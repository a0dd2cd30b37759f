/* Reading, writing and asking a calibration file: header, experts, trees, values of the processes, then the JSON that
 * says where it comes from. Little-endian, laid out as the structs are, checked once on reading. */
#include "kernel/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernel/predictor_check.h"

typedef struct file_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t checksum; /* of everything behind the header */
    uint64_t length;   /* of the file */
    uint64_t base;
    uint32_t expert_count, expert_bytes;
    uint32_t tree_count, tree_bytes;
    uint32_t value_count, reserved;
} file_header;

_Static_assert(sizeof(file_header) == 64, "the header is one cache line");
_Static_assert(sizeof(ft_calibrated) % 8 == 0, "experts stay aligned");

static const char magic[8] = {'F', 'T', 'C', 'A', 'L', 'I', 'B', 'R'};

double ft__process_mean(const ft_process *p, const float *values, const float *feature)
{
    float x[FT_PROCESS_WIDTH], sum[FT_PROCESS_LANES] = {0};
    const float *at = values + p->first;
    for (uint32_t j = 0; j < p->width; j++) x[j] = (feature[p->feature[j]] - p->center[j]) * p->scale[j];
    for (uint32_t b = 0; b < p->blocks; b++) {
        float d[FT_PROCESS_LANES] = {0};
        for (uint32_t j = 0; j < p->width; j++, at += FT_PROCESS_LANES)
            for (int l = 0; l < FT_PROCESS_LANES; l++) d[l] += (x[j] - at[l]) * (x[j] - at[l]);
        for (int l = 0; l < FT_PROCESS_LANES; l++) sum[l] += at[l] / (1 + 0.5f * d[l]);
        at += FT_PROCESS_LANES;
    }
    double total = 0;
    for (int l = 0; l < FT_PROCESS_LANES; l++) total += (double)sum[l];
    return total;
}

static bool process_sound(const ft_process *p, const float *values, size_t value_count)
{
    if (p->width > FT_PROCESS_WIDTH || p->blocks > FT_PROCESS_POINTS / FT_PROCESS_LANES) return false;
    size_t need = ft__process_values(p);
    if (p->first > value_count || need > value_count - p->first) return false;
    for (uint32_t j = 0; j < p->width; j++)
        if (p->feature[j] >= FT_MAX_FEATURES || !isfinite(p->center[j]) || !isfinite(p->scale[j])) return false;
    for (size_t i = 0; i < need; i++)
        if (!(fabsf(values[p->first + i]) < 1e6f)) return false;
    return true;
}

/* Where every variant's expert stands. Variants this program does not know are left alone. */
static bool index_cells(ft_calibration *c)
{
    for (int f = 0; f < FT_MAX_FAMILIES; f++)
        for (int v = 0; v < FT_MAX_VARIANTS; v++) c->cell[f][v] = -1;
    for (size_t i = 0; i < c->file.expert_count; i++) {
        const ft_expert *e = &c->file.experts[i].expert;
        if (i && strcmp(e->gpu, c->gpu)) return false;
        memcpy(c->gpu, e->gpu, sizeof c->gpu);
        int f = ft__family_find(e->family);
        for (int v = 0; f >= 0 && v < ft__families[f]->variant_count; v++)
            if (!strcmp(ft__families[f]->variant_name(v), e->variant)) c->cell[f][v] = (int16_t)i;
    }
    return true;
}

static ft_status check_header(const file_header *h, size_t length, const char *where, ft_error *err)
{
    if (memcmp(h->magic, magic, sizeof magic))
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0,
                           "not a calibration file: `foretell fit --calibrate MEASUREMENTS -o FILE` makes one");
    if (h->version != FT_CALIBRATION_VERSION)
        return ft__fail_at(
            err, FT_E_FORMAT, where, 0, 0,
            "calibration version %u, this program reads version %d: make it again with `foretell fit --calibrate`",
            h->version, FT_CALIBRATION_VERSION);
    if (h->length != length)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "truncated or extended: %zu bytes, its header says %llu",
                           length, (unsigned long long)h->length);
    if (h->reserved || h->header_bytes != sizeof *h || h->expert_bytes != sizeof(ft_calibrated) ||
        h->tree_bytes != sizeof(ft_tree) || h->expert_count > INT16_MAX)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged header: record sizes do not match this version");
    return FT_OK;
}

ft_status ft__calibration_read(const void *data, size_t length, const char *where, ft_calibration *out, ft_error *err)
{
    const unsigned char *at = data;
    file_header h;
    ft_calibration_records *r = &out->file;
    memset(out, 0, sizeof *out);
    if (length < sizeof h)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "not a calibration file: %zu bytes are less than its header",
                           length);
    memcpy(&h, at, sizeof h);
    FT_TRY(check_header(&h, length, where, err));
    uint64_t need = sizeof h + (uint64_t)h.expert_count * sizeof(ft_calibrated) +
                    (uint64_t)h.tree_count * sizeof(ft_tree) + (uint64_t)h.value_count * sizeof(float);
    if (need > length)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged header: counts do not add up to the length");
    if (ft__records_checksum(at + sizeof h, length - sizeof h) != h.checksum)
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0, "damaged: the checksum does not match");
    r->experts = (const ft_calibrated *)(const void *)(at + sizeof h);
    r->expert_count = h.expert_count;
    r->trees = (const ft_tree *)(const void *)(r->experts + h.expert_count);
    r->tree_count = h.tree_count;
    r->values = (const float *)(const void *)(r->trees + h.tree_count);
    r->value_count = h.value_count;
    r->meta = (const char *)(r->values + h.value_count);
    r->meta_length = length - (size_t)need;
    r->base = h.base;
    bool sound = h.expert_count > 0;
    for (size_t i = 0; i < h.expert_count && sound; i++)
        /* Inherited experts use the predictor's trees: ft__predictor_calibrate checks those. */
        sound = ft__expert_sound(&r->experts[i].expert, ft__inherited(&r->experts[i]) ? SIZE_MAX : h.tree_count) &&
                process_sound(&r->experts[i].process, r->values, h.value_count);
    for (size_t i = 0; i < h.tree_count && sound; i++) sound = ft__tree_sound(&r->trees[i]);
    if (!sound || !index_cells(out))
        return ft__fail_at(err, FT_E_FORMAT, where, 0, 0,
                           "damaged, or made for other models than this program's: it holds impossible figures; make "
                           "it again with `foretell fit --calibrate`");
    return FT_OK;
}

ft_status ft__calibration_write(const ft_calibration_records *r, void **out, size_t *length, ft_error *err)
{
    const struct {
        const void *from;
        size_t bytes;
    } parts[] = {{r->experts, r->expert_count * sizeof *r->experts},
                 {r->trees, r->tree_count * sizeof *r->trees},
                 {r->values, r->value_count * sizeof *r->values},
                 {r->meta, r->meta_length}};
    size_t total = sizeof(file_header);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) total += parts[i].bytes;
    unsigned char *at = calloc(1, total);
    if (!at) return ft__fail(err, FT_E_MEMORY, "out of memory writing a calibration of %zu bytes", total);
    unsigned char *to = at + sizeof(file_header);
    file_header h = {.version = FT_CALIBRATION_VERSION,
                     .header_bytes = sizeof h,
                     .length = total,
                     .base = r->base,
                     .expert_count = (uint32_t)r->expert_count,
                     .expert_bytes = sizeof *r->experts,
                     .tree_count = (uint32_t)r->tree_count,
                     .tree_bytes = sizeof *r->trees,
                     .value_count = (uint32_t)r->value_count};
    memcpy(h.magic, magic, sizeof magic);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes) memcpy(to, parts[i].from, parts[i].bytes);
        to += parts[i].bytes;
    }
    h.checksum = ft__records_checksum(at + sizeof h, total - sizeof h);
    memcpy(at, &h, sizeof h);
    *out = at;
    *length = total;
    return FT_OK;
}

void ft__calibration_close(const ft_calibration *c)
{
    if (!c) return;
    if (c->mapping) ft__file_unmap(c->mapping, c->mapping_length);
    free((void *)(uintptr_t)c);
}

ft_status ft__predictor_calibrate(ft_predictor *p, const char *path, ft_error *err)
{
    if (p->mode != FT_PREDICT_LEARNED)
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, path, 0, 0,
            "a calibration adapts a fitted predictor; roofline, linear and scaling have nothing to adapt");
    const void *data;
    size_t length;
    ft_calibration *c = calloc(1, sizeof *c);
    if (!c) return ft__no_memory(err);
    ft_status s = ft__file_map(path, &data, &length, err);
    if (s == FT_OK) {
        s = ft__calibration_read(data, length, path, c, err);
        c->mapping = data;
        c->mapping_length = length;
    }
    if (s == FT_OK && c->file.base != p->identity)
        s = ft__fail_at(err, FT_E_FORMAT, path, 0, 0,
                        "made on another predictor than this one: make it again from its measurements with `foretell "
                        "fit --calibrate`, or give the predictor it was made on with --predictor");
    for (size_t i = 0; s == FT_OK && i < c->file.expert_count; i++)
        if (ft__inherited(&c->file.experts[i]) && !ft__expert_sound(&c->file.experts[i].expert, p->trees.count))
            s = ft__fail_at(err, FT_E_FORMAT, path, 0, 0, "damaged: record %zu names trees that are not there", i);
    if (s != FT_OK) {
        ft__calibration_close(c);
        return s;
    }
    ft__calibration_close(p->calibration);
    p->calibration = c;
    return FT_OK;
}

const ft_calibrated *ft__calibrated(const ft_predictor *p, int family, int variant, const ft_device *device)
{
    const ft_calibration *c = p->calibration;
    if (!c || c->cell[family][variant] < 0 || strcmp(c->gpu, device->name)) return NULL;
    return &c->file.experts[c->cell[family][variant]];
}

const ft_calibrated *ft__calibrated_of(const ft_predictor *p, const ft_expert *expert)
{
    const ft_calibration *c = p->calibration;
    if (!c) return NULL;
    const ft_calibrated *at = (const ft_calibrated *)(const void *)expert; /* the expert is its first member */
    return (uintptr_t)at >= (uintptr_t)c->file.experts &&
                   (uintptr_t)at < (uintptr_t)(c->file.experts + c->file.expert_count)
               ? at
               : NULL;
}
