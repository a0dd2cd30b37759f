/* catalogue.c: which GPUs and models are known, and what is known of one.
 *
 * A model's parameters and the bytes that its cache grows by are counted on graphs, as every forecast counts them, so
 * that a sheet never disagrees with a step.
 */
#include "study/catalogue.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "device/gpu.h"
#include "study/step.h"

/* -- GPUs -------------------------------------------------------------------------------------- */

const char *ft__vendor_name(ft_vendor v)
{
    static const char *const names[] = {
        [FT_VENDOR_NVIDIA] = "nvidia", [FT_VENDOR_AMD] = "amd", [FT_VENDOR_INTEL] = "intel"};
    return (unsigned)v < sizeof names / sizeof *names ? names[v] : "other";
}

static bool passes(const ft_gpus_request *r, const ft_device *d)
{
    if (r->vendor && strcmp(r->vendor, ft__vendor_name(d->vendor)) != 0) return false;
    if (r->generation && strcmp(r->generation, d->generation) != 0) return false;
    if (d->memory_gib < r->min_memory_gib) return false;
    return r->dtype < 0 || d->peak_tflops[r->dtype] > 0;
}

/* A word that no GPU of the catalogue answers to is a slip of the pen, not an empty answer. */
static ft_status check_generation(const char *generation, ft_arena *arena, ft_error *err)
{
    size_t count = ft__catalogue_count();
    const char **names = ft__arena_array(arena, count + 1, sizeof *names);
    if (!names) return ft__no_memory(err);
    for (size_t i = 0; i < count; i++) {
        ft_device *d = ft__arena_alloc(arena, sizeof *d);
        if (!d) return ft__no_memory(err);
        FT_TRY(ft__catalogue_find(ft__catalogue_name(i), d, err));
        names[i] = d->generation;
        if (!strcmp(names[i], generation)) return FT_OK;
    }
    const char *nearest = ft__nearest(generation, names, count);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, "generation", 0, 0, "unknown generation \"%.60s\"; did you mean \"%s\"?",
                           generation, nearest);
    return ft__fail_at(err, FT_E_NAME, "generation", 0, 0, "unknown generation \"%.60s\"", generation);
}

static json_t *catalogued(const char *name)
{
    json_t *spec = NULL;
    ft_error ignored;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        if (strcmp(ft__catalogue_name(i), name) != 0) continue;
        size_t length;
        const char *text = ft__catalogue_json(i, &length);
        return ft__json_parse(text, length, name, &spec, &ignored) == FT_OK ? spec : NULL;
    }
    return NULL;
}

/* The file as it stands, for its sources and notes: from the catalogue by one of its names, or from the path. */
static json_t *spec_of(const char *name, const ft_device *device)
{
    json_t *spec = catalogued(name);
    ft_error ignored;
    if (!spec && ft__json_load(name, &spec, &ignored) != FT_OK) spec = catalogued(device->name);
    return spec;
}

static ft_status add_named(const json_t *name, ft_gpu_list *out, const ft_gpus_request *r, ft_error *err)
{
    const char *path = json_string_value(name);
    ft_gpu_sheet *sheet = &out->sheets[out->count];
    ft_text warnings = {0};
    ft_status status = path ? ft__device_open(path, &sheet->device, &warnings, err)
                            : ft__device_read(name, "name", &sheet->device, &warnings, err);
    if (status != FT_OK && err && !err->where[0]) strcpy(err->where, "name");
    sheet->warnings = warnings.length ? ft__arena_copy(out->arena, warnings.at, warnings.length) : "";
    if (status == FT_OK && (warnings.failed || !sheet->warnings)) status = ft__no_memory(err);
    ft__text_free(&warnings);
    if (status != FT_OK || !passes(r, &sheet->device)) return status;
    sheet->spec = path ? spec_of(path, &sheet->device) : json_incref((json_t *)(uintptr_t)name);
    out->count++;
    return sheet->spec ? FT_OK : ft__no_memory(err); /* it was read once: what is there now is too little memory */
}

ft_status ft__gpus_of(const ft_gpus_request *r, ft_gpu_list *out, ft_error *err)
{
    *out = (ft_gpu_list){.named = r->names, .arena = ft__arena_new((size_t)64 << 20)};
    if (!out->arena) return ft__no_memory(err);
    if (r->generation) FT_TRY(check_generation(r->generation, out->arena, err));
    size_t count = !r->names ? ft__catalogue_count() : json_is_array(r->names) ? json_array_size(r->names) : 1;
    out->sheets = ft__arena_array(out->arena, count + 1, sizeof *out->sheets);
    if (!out->sheets) return ft__no_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (r->names) {
            FT_TRY(add_named(json_is_array(r->names) ? json_array_get(r->names, i) : r->names, out, r, err));
            continue;
        }
        ft_gpu_sheet *sheet = &out->sheets[out->count];
        FT_TRY(ft__catalogue_find(ft__catalogue_name(i), &sheet->device, err));
        sheet->warnings = "";
        if (passes(r, &sheet->device)) out->count++;
    }
    return FT_OK;
}

const char *ft__gpu_name(size_t index) { return index < ft__catalogue_count() ? ft__catalogue_name(index) : NULL; }

ft_status ft__gpu_named(const char *name, const char **out, ft_error *err)
{
    ft_device device;
    FT_TRY(ft__catalogue_find(name, &device, err));
    *out = name;
    for (size_t i = 0; i < ft__catalogue_count(); i++)
        if (!strcmp(ft__catalogue_name(i), device.name)) *out = ft__catalogue_name(i);
    return FT_OK;
}

void ft__gpu_list_free(ft_gpu_list *list)
{
    for (size_t i = 0; i < list->count; i++) json_decref(list->sheets[i].spec);
    ft__arena_free(list->arena);
    *list = (ft_gpu_list){0};
}

/* -- one model --------------------------------------------------------------------------------- */

/* Elements that one more token of context adds to the cache: the difference of two graphs, so that windows and latents
 * count as they are built. */
static double cache_elements(const ft_graph *g)
{
    double bytes = 0;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_CACHE && (t->storage < 0 || t->storage == i))
            bytes += ft__tensor_bytes(t) * (double)(t->copies > 0 ? t->copies : 1);
    }
    return bytes;
}

static ft_status cache_per_token(ft_scratch *s, const ft_arch *arch, double *out, ft_error *err)
{
    ft_workload work = {.task = FT_DECODE, .dtype = FT_BF16, .kv_dtype = FT_BF16, .batch = 1, .accumulate = 1};
    double bytes[2];
    bool generates = arch->design == FT_DECODER_ONLY;
    for (int i = 0; i < 2; i++) {
        ft_graph *g = NULL;
        work.seq = i ? 1024 : 512;
        if (!generates) return FT_OK;
        FT_TRY(ft__scratch_empty(s, err));
        ft_status status = ft__model_graph(arch, &work, s->arena, &g, err);
        if (status == FT_E_MEMORY) return status;
        if (status != FT_OK) return FT_OK; /* a model that does not decode has no cache */
        bytes[i] = cache_elements(g);
    }
    *out = (bytes[1] - bytes[0]) / 512;
    return FT_OK;
}

static ft_status count_parameters(ft_scratch *s, ft_model_sheet *out, const ft_layer **layers, size_t *layer_count,
                                  ft_error *err)
{
    out->kv_bytes_per_token = 0;
    if (layers) FT_TRY(cache_per_token(s, &out->arch, &out->kv_bytes_per_token, err));
    FT_TRY(ft__scratch_empty(s, err));
    ft_workload work = {
        .task = FT_FORWARD_PASS, .dtype = FT_BF16, .kv_dtype = FT_BF16, .batch = 1, .seq = 16, .accumulate = 1};
    if (out->arch.fixed_batch > 0) work.batch = out->arch.fixed_batch;
    if (out->arch.fixed_seq > 0) work.seq = out->arch.fixed_seq;
    ft_graph *g = NULL;
    FT_TRY(ft__model_graph(&out->arch, &work, s->arena, &g, err));
    out->parameters = g->parameters;
    out->active_parameters = g->active_parameters;
    if (!layers || !layer_count) return FT_OK;
    static const ft_step nothing_timed;
    ft_step_view view = {.arch = &out->arch, .work = &work, .graph = g, .step = &nothing_timed, .arena = s->arena};
    *layers = ft__layers(&view, layer_count);
    return *layers ? FT_OK : ft__no_memory(err);
}

ft_status ft__model_sheet_of(ft_scratch *s, const json_t *model, const char *read_as, ft_model_sheet *out,
                             const ft_layer **layers, size_t *layer_count, ft_error *err)
{
    const char *name = json_string_value(model);
    memset(out, 0, sizeof *out);
    FT_TRY(name ? ft__model_open(name, read_as, &out->arch, err) : ft__model_read(model, read_as, &out->arch, err));
    out->entry = name ? ft__model_find(name) : NULL;
    out->name = out->entry ? out->entry->name : name ? name : out->arch.model_type;
    ft_status status = count_parameters(s, out, layers, layer_count, err);
    ft__arch_release(&out->arch);
    return status;
}

/* -- models ------------------------------------------------------------------------------------ */

/* Where so many letters of `part` end in the text, whatever their case; NULL: nowhere. */
static const char *behind(const char *text, const char *part, size_t length)
{
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
        if (i == length) return text + length;
    }
    return length ? NULL : text;
}

/* "qwen3" anywhere in it; "qwen*8b": both, one behind the other. */
static bool holds(const char *text, const char *pattern)
{
    while (text && *pattern) {
        size_t length = strcspn(pattern, "*");
        text = behind(text, pattern, length);
        pattern += length + (pattern[length] == '*');
    }
    return text != NULL;
}

static ft_status sheet_of(ft_scratch *s, const char *name, const char *read_as, ft_model_list *out, bool layers,
                          ft_error *err)
{
    json_t *model = json_string(name);
    if (!model) return ft__no_memory(err);
    ft_model_sheet *sheet = &out->sheets[out->count];
    ft_status status = ft__model_sheet_of(s, model, read_as, sheet, layers ? &out->layers : NULL, &out->layer_count,
                                          err);
    if (!sheet->entry) sheet->name = name; /* lives as long as the request, which the string made here does not */
    json_decref(model);
    if (status == FT_OK) out->count++;
    if (status != FT_OK && err && (!err->where[0] || !strcmp(err->where, "model"))) strcpy(err->where, "name");
    return status;
}

static ft_status list_types(const char *pattern, ft_model_list *out, ft_error *err)
{
    size_t count = ft__config_type_count();
    out->types = ft__arena_array(out->arena, count + 1, sizeof *out->types);
    if (!out->types) return ft__no_memory(err);
    for (size_t i = 0; i < count; i++)
        if (holds(ft__config_type_at(i), pattern)) out->types[out->type_count++] = ft__config_type_at(i);
    return FT_OK;
}

ft_status ft__models_of(ft_scratch *s, const ft_models_request *r, ft_model_list *out, ft_error *err)
{
    size_t count = ft__model_count();
    *out = (ft_model_list){.arena = ft__arena_new((size_t)64 << 20)};
    if (!out->arena) return ft__no_memory(err);
    if (r->types) return list_types(r->name, out, err);
    out->sheets = ft__arena_array(out->arena, count + 1, sizeof *out->sheets);
    if (!out->sheets) return ft__no_memory(err);
    out->named = *r->name && (ft__model_find(r->name) || strchr(r->name, '/') || ft__file_exists(r->name));
    if (out->named) return sheet_of(s, r->name, r->read_as, out, true, err);
    for (size_t i = 0; i < count; i++) {
        const ft_model_entry *e = ft__model_at(i);
        if (holds(e->name, r->name) || holds(e->hub, r->name) || holds(e->model_type, r->name))
            FT_TRY(sheet_of(s, e->name, NULL, out, false, err));
    }
    if (out->count > 0) return FT_OK;
    return sheet_of(s, r->name, NULL, out, false, err); /* a slip of the pen: the error knows the nearest name */
}

void ft__model_list_free(ft_model_list *list)
{
    ft__arena_free(list->arena);
    *list = (ft_model_list){0};
}
