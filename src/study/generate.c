/* generate.c: an image, or a video, of its prompt, as diffusers' pipelines make one.
 *
 * Text encoders read the prompt (and, with guidance, what to turn away from) once, the denoiser runs for every step,
 * with guidance over twice the batch or twice, the decoder makes pixels of the latents, and the host makes files of
 * those. Parts run after one another, so their times add up, and so do their intervals: they err alike. Between the
 * denoiser's passes the scheduler issues a few small operators, which cost time where the host is what is waited for.
 *
 * All parts on the GPU: each runs beside the others' weights. Offloaded, a part's weights are copied in before it runs
 * and out behind it, from memory that is not pinned (accelerate's cpu_offload_with_hook).
 *
 * In tiles, a decoder's images overlap by a quarter of a tile (AutoencoderKL.tiled_decode). Leaves out: what joins
 * tiles, the encoder half of an autoencoder, tokenizers, safety checkers. */
#include "study/generate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/config/config.h"
#include "kernel/kernel.h"
#include "request/pictures.h"
#include "request/tasks.h"
#include "study/ask.h"
#include "study/generate_constants.h"
#include "timeline/energy.h"

typedef struct generating {
    const ft_context *ft;
    ft_scratch *scratch;
    const ft_generate_asked *asked;
    ft_generated *r;
    ft_device device; /* of the denoiser's pass */
    double quantile;
    ft_error *err;
} generating;

/* -- which ------------------------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) a++, b++;
    return !*a && !*b;
}

static const ft_generator *find(const char *name)
{
    for (size_t i = 0; i < ft__generator_count; i++)
        for (int k = 0; k < FT_MOST_MADE_BY; k++)
            if (ft__generators[i].models[k] && same(ft__generators[i].models[k], name)) return &ft__generators[i];
    return NULL;
}

const ft_generator *ft__generator_of(const json_t *object)
{
    const json_t *model = ft__key_get(object, FT_KEY_ID_MODEL);
    if (json_is_object(model)) model = json_object_get(model, "base");
    const char *name = json_string_value(model);
    const ft_generator *g = name ? find(name) : NULL;
    const ft_model_entry *entry = name && !g ? ft__model_find(name) : NULL;
    return entry ? find(entry->name) : g;
}

/* -- one pass of a part ------------------------------------------------------------------------ */

typedef struct pass {
    const char *model;
    const char *dtype, *attention, *execution;
    int64_t batch, seq;
    ft_picture_size size;
    bool denoises;
} pass;

static bool copy_key(json_t *to, const json_t *from, ft_key_id key)
{
    json_t *value = ft__key_get(from, key);
    return !value || ft__key_set(to, key, json_incref(value));
}

static bool set_size(json_t *o, ft_picture_size s)
{
    char text[48];
    snprintf(text, sizeof text, "%lldx%lld", (long long)s.height, (long long)s.width);
    bool fine = s.height < 1 || ft__key_set(o, FT_KEY_ID_IMAGE_SIZE, json_string(text));
    return fine && (s.frames < 1 || ft__key_set(o, FT_KEY_ID_FRAMES, json_integer(s.frames)));
}

static json_t *denoiser_model(const generating *g)
{
    json_t *model = ft__key_get(g->asked->object, FT_KEY_ID_MODEL);
    if (g->r->by->words < 1 || !json_is_string(model)) return json_incref(model); /* a config says it itself */
    return json_pack("{s:O,s:I}", "base", model, "text_tokens", (json_int_t)g->r->by->words);
}

static json_t *request_of(const generating *g, const pass *p)
{
    static const ft_key_id alike[] = {FT_KEY_ID_GPU,       FT_KEY_ID_QUANTILE,   FT_KEY_ID_HOST,   FT_KEY_ID_HOST_US,
                                      FT_KEY_ID_POWER_CAP, FT_KEY_ID_EXPANDABLE, FT_KEY_ID_PYTORCH};
    static const ft_key_id own[] = {FT_KEY_ID_WEIGHTS_DTYPE, FT_KEY_ID_WEIGHTS_BY, FT_KEY_ID_STACK, FT_KEY_ID_READ_AS};
    const json_t *from = g->asked->object;
    json_t *o = json_object();
    bool fine = o && ft__key_set(o, FT_KEY_ID_TASK, json_string("forward"));
    for (size_t i = 0; fine && i < sizeof alike / sizeof *alike; i++) fine = copy_key(o, from, alike[i]);
    for (size_t i = 0; fine && p->denoises && i < sizeof own / sizeof *own; i++) fine = copy_key(o, from, own[i]);
    fine = fine && ft__key_set(o, FT_KEY_ID_MODEL, p->denoises ? denoiser_model(g) : json_string(p->model)) &&
           ft__key_set(o, FT_KEY_ID_MODEL_DTYPE, json_string(p->dtype)) &&
           ft__key_set(o, FT_KEY_ID_ATTENTION, json_string(p->attention)) &&
           ft__key_set(o, FT_KEY_ID_EXECUTION, json_string(p->execution)) &&
           ft__key_set(o, FT_KEY_ID_MICRO_BATCH, json_integer(p->batch)) && set_size(o, p->size) &&
           (p->seq < 1 || ft__key_set(o, FT_KEY_ID_SEQ, json_integer(p->seq)));
    if (fine) return o;
    json_decref(o);
    return NULL;
}

static double need_of(const ft_memory *m) { return m->reserved_bytes + m->context_bytes; }

/* `calls` passes more of a part. */
static ft_status add_passes(generating *g, const pass *p, double calls, ft_generated_part *part)
{
    static const ft_idle_list none = {0};
    json_t *object = request_of(g, p);
    if (!object) return ft__no_memory(g->err);
    ft_asker ask = {.ft = g->ft, .scratch = g->scratch, .object = object, .idle = &none, .unpaused = p->denoises};
    ft_step_view v;
    ft_status status = ft__ask_step(&ask, &v, g->err);
    json_decref(object);
    FT_TRY(status);
    const ft_step *s = v.step;
    const double each = s->launches > 0 ? s->host_ms / s->launches : 0;
    const double waits = p->denoises && v.work->execution == FT_RUN_EAGER
                             ? fmax(s->host_ms + FT_K_GENERATE_SCHEDULER_OPS * each - s->step_ms, 0)
                             : 0;
    part->calls += calls;
    part->ms += calls * (s->step_ms + waits);
    part->low_ms += calls * (s->low_ms + waits);
    part->high_ms += calls * (s->high_ms + waits);
    part->weights_bytes = fmax(part->weights_bytes, s->memory.weights_bytes);
    part->need_bytes = fmax(part->need_bytes, need_of(&s->memory));
    part->joules += calls * ft__step_joules(v.graph, s, v.device);
    if (!p->denoises) return FT_OK;
    g->device = *v.device;
    g->quantile = v.quantile;
    g->r->capacity_bytes = s->memory.capacity_bytes;
    g->r->execution = v.work->execution;
    g->r->attention = v.work->attention;
    return FT_OK;
}

static ft_generated_part *next_part(ft_generated *r, const char *what, const char *model)
{
    ft_generated_part *part = &r->parts[r->part_count++];
    *part = (ft_generated_part){.what = what, .model = model};
    return part;
}

/* -- the parts --------------------------------------------------------------------------------- */

static const char *said(const generating *g, ft_key_id key, const char *usual)
{
    const char *word = json_string_value(ft__key_get(g->asked->object, key));
    return word ? word : usual;
}

/* Formats of fewer bits are the denoiser's alone. */
static const char *dtype_beside(const generating *g)
{
    static const char *const plain[] = {"bf16", "fp16", "fp32", "tf32", "fp64"};
    const char *dtype = said(g, FT_KEY_ID_MODEL_DTYPE, "bf16");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(dtype, plain[i])) return plain[i];
    return !strcmp(dtype, "amp_fp16") ? "fp16" : "bf16";
}

static const char *attention_beside(const generating *g)
{
    return strcmp(said(g, FT_KEY_ID_ATTENTION, "sdpa"), "eager") != 0 ? "sdpa" : "eager";
}

static ft_status add_denoiser(generating *g)
{
    ft_generated *r = g->r;
    const bool doubled = r->guidance == FT_GUIDE_BATCH;
    const pass p = {.denoises = true,
                    .dtype = said(g, FT_KEY_ID_MODEL_DTYPE, "bf16"),
                    .attention = said(g, FT_KEY_ID_ATTENTION, "sdpa"),
                    .execution = said(g, FT_KEY_ID_EXECUTION, "eager"),
                    .batch = r->batch * (doubled ? 2 : 1),
                    .size = r->size};
    ft_generated_part *part = next_part(r, "denoiser", r->by->models[0]);
    FT_TRY(add_passes(g, &p, (double)r->steps * (r->guidance == FT_GUIDE_TWICE ? 2 : 1), part));
    const double more = (double)(r->by->copies - 1) * part->weights_bytes;
    part->weights_bytes += more;
    part->need_bytes += more;
    return FT_OK;
}

static ft_status add_texts(generating *g)
{
    ft_generated *r = g->r;
    const bool ideal = !strcmp(said(g, FT_KEY_ID_EXECUTION, "eager"), "ideal");
    for (size_t i = 0; i < r->by->text_count; i++) {
        const ft_text_encoder *t = &r->by->text[i];
        const pass p = {.model = t->model,
                        .dtype = dtype_beside(g),
                        .attention = attention_beside(g),
                        .execution = ideal ? "ideal" : "eager",
                        .batch = r->batch,
                        .seq = t->seq};
        const bool turned_away = r->guidance != FT_GUIDE_NONE || r->by->guidance == FT_GUIDE_NONE;
        FT_TRY(add_passes(g, &p, (double)(turned_away ? t->calls : 1), next_part(r, "text", t->model)));
    }
    return FT_OK;
}

/* Whole tiles, and what is left of the last one, along one side. */
typedef struct tiles {
    int64_t whole, rest; /* rest: pixels of what is left; 0: none */
} tiles;

static tiles tiles_of(int64_t side, int64_t tile)
{
    const int64_t stride = tile - tile / 4;
    tiles t = {0};
    for (int64_t at = 0; at < side; at += stride) {
        if (at + tile <= side)
            t.whole++;
        else
            t.rest += side - at; /* where two begin before the end, both as one */
    }
    return t;
}

static ft_status decode(generating *g, pass *p, ft_generated_part *part)
{
    const ft_picture_size all = p->size;
    const int64_t tile = g->r->by->tile;
    if (!g->r->tiled || tile < 1 || (all.height <= tile && all.width <= tile)) return add_passes(g, p, 1, part);
    const tiles high = tiles_of(all.height, tile), wide = tiles_of(all.width, tile);
    const struct {
        int64_t height, width, count;
    } kinds[] = {{tile, tile, high.whole * wide.whole},
                 {tile, wide.rest, wide.rest > 0 ? high.whole : 0},
                 {high.rest, tile, high.rest > 0 ? wide.whole : 0},
                 {high.rest, wide.rest, high.rest > 0 && wide.rest > 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        p->size.height = kinds[i].height;
        p->size.width = kinds[i].width;
        if (kinds[i].count > 0) FT_TRY(add_passes(g, p, (double)kinds[i].count, part));
    }
    return FT_OK;
}

static ft_status add_decoder(generating *g)
{
    ft_generated *r = g->r;
    const ft_generator *by = r->by;
    if (!by->decoder[0]) return FT_OK;
    const char *dtype = dtype_beside(g);
    const bool wide = by->wide == FT_WIDE_ALWAYS || (by->wide == FT_WIDE_FOR_FP16 && !strcmp(dtype, "fp16"));
    if (wide || !strcmp(dtype, "fp32")) dtype = g->device.peak_tflops[FT_TF32] > 0 ? "tf32" : "fp32";
    pass p = {.model = by->decoder,
              .dtype = dtype,
              .attention = attention_beside(g),
              .execution = said(g, FT_KEY_ID_EXECUTION, "eager"),
              .batch = r->batch,
              .size = r->size};
    /* A decoder of videos that makes an image. */
    ft_arch arch;
    FT_TRY(ft__model_open(by->decoder, NULL, &arch, g->err));
    if (p.size.frames < 1 && ft__takes_frames(&arch)) p.size.frames = 1;
    ft__arch_release(&arch);
    return decode(g, &p, next_part(r, "decoder", by->decoder));
}

/* To the host, to bytes, to an image of Pillow's. */
static void add_finish(generating *g)
{
    ft_generated *r = g->r;
    ft_generated_part *part = next_part(r, "finish", "");
    const double frames = r->size.frames > 0 ? (double)r->size.frames : 1;
    part->calls = 1;
    part->ms = (double)r->batch * frames * (double)r->size.height * (double)r->size.width * 1e-6 *
               FT_K_GENERATE_FINISH_MS;
    part->low_ms = part->ms / FT_K_GENERATE_FINISH_SPREAD;
    part->high_ms = part->ms * FT_K_GENERATE_FINISH_SPREAD;
}

/* -- together ---------------------------------------------------------------------------------- */

static ft_fit fit_of(double need, double capacity)
{
    return need <= capacity * FT_K_GENERATE_SURELY ? FT_FIT_YES : need <= capacity ? FT_FIT_TIGHT : FT_FIT_NO;
}

static void add_up(generating *g)
{
    ft_generated *r = g->r;
    double weights = 0, joules = 0;
    for (size_t i = 0; i < r->part_count; i++) {
        r->ms += r->parts[i].ms;
        r->low_ms += r->parts[i].low_ms;
        r->high_ms += r->parts[i].high_ms;
        weights += r->parts[i].weights_bytes;
        joules += r->parts[i].joules;
    }
    for (size_t i = 0; i < r->part_count; i++) {
        const ft_generated_part *p = &r->parts[i];
        if (!(p->need_bytes > 0)) continue;
        r->need_bytes = fmax(r->need_bytes, p->need_bytes + weights - p->weights_bytes);
        r->offload_need_bytes = fmax(r->offload_need_bytes, p->need_bytes);
    }
    const double link = g->device.pcie_gbps > 0 ? g->device.pcie_gbps : FT_K_GENERATE_PAGEABLE_GBPS;
    const double gbps = fmin(FT_K_GENERATE_PAGEABLE_GBPS, link), copies_ms = 2 * weights / gbps * 1e-6;
    r->offload_ms = r->ms + copies_ms;
    r->offload_low_ms = r->low_ms + copies_ms / FT_K_GENERATE_PAGEABLE_SPREAD;
    r->offload_high_ms = r->high_ms + copies_ms * FT_K_GENERATE_PAGEABLE_SPREAD;
    r->fits = fit_of(r->need_bytes, r->capacity_bytes);
    r->offload_fits = fit_of(r->offload_need_bytes, r->capacity_bytes);
    r->energy = ft__energy_of(&g->device, joules, r->ms, r->low_ms, r->high_ms, ft__interval_level(g->quantile));
}

/* As they run: the denoiser was asked first, as its pass says on what. */
static void order_parts(ft_generated *r)
{
    const ft_generated_part denoiser = r->parts[0];
    memmove(r->parts, r->parts + 1, (r->part_count - 1) * sizeof *r->parts);
    r->parts[r->part_count - 1] = denoiser;
}

static ft_status size_of(generating *g)
{
    ft_said sizes;
    ft_picture_size given = {0}, *out = &g->r->size;
    json_t *only = json_object();
    bool fine = only && copy_key(only, g->asked->object, FT_KEY_ID_IMAGE_SIZE) &&
                copy_key(only, g->asked->object, FT_KEY_ID_FRAMES);
    ft__said_init(&sizes);
    ft_status status = fine ? ft__said_read(only, FT_SECTION_MODEL, &sizes, g->err) : ft__no_memory(g->err);
    if (status == FT_OK) status = ft__picture_size_read(&sizes, &given, g->err);
    json_decref(only);
    *out = g->r->by->size;
    if (given.height > 0) {
        out->height = given.height;
        out->width = given.width;
    }
    if (given.frames > 0 && out->frames > 0) out->frames = given.frames;
    return status;
}

ft_status ft__generate_of(const ft_context *ft, ft_scratch *scratch, const ft_generate_asked *asked, ft_generated *out,
                          ft_error *err)
{
    generating g = {.ft = ft, .scratch = scratch, .asked = asked, .r = out, .err = err};
    *out = (ft_generated){.by = ft__generator_of(asked->object)};
    if (!out->by) return FT_OK;
    out->steps = asked->steps > 0 ? asked->steps : out->by->steps;
    out->batch = asked->batch;
    out->guidance = asked->guidance >= 0 ? (ft_guidance)asked->guidance : out->by->guidance;
    out->tiled = asked->tiled;
    FT_TRY(size_of(&g));
    FT_TRY(add_denoiser(&g));
    FT_TRY(add_texts(&g));
    order_parts(out);
    FT_TRY(add_decoder(&g));
    add_finish(&g);
    add_up(&g);
    return FT_OK;
}
