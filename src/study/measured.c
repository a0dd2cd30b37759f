/* measured.c: measured steps of whole models become requests, as a user would ask them.
 *
 * "busy" is the sum of the kernels that a profiler saw: an eager step is asked for as "ideal", without a host. "wall"
 * is what the user waits for. "memory" is the allocator's peak. A step is host-bound where the wall is far longer than
 * the busy time; those stand apart, as the host's time varies far more than a kernel's.
 */
#include "study/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/median.h"
#include "base/unzip.h"
#include "request/keys.h"
#include "study/measured_constants.h"
#include "study/measured_model_list.h"

static const double gib = 1 << 30;

/* -- groups ------------------------------------------------------------------------------------ */

enum { MOST_GROUPS = 64 };

typedef struct group {
    char name[24];
    double *errors; /* forecast over measured, less one */
    size_t count, room, inside, with_interval;
} group;

typedef struct models {
    ft_answerer answer;
    void *user;
    ft_measured_case each;
    void *context;
    group groups[MOST_GROUPS];
    size_t group_count;
    size_t failed;
} models;

static group *group_of(models *m, const char *name)
{
    for (size_t i = 0; i < m->group_count; i++)
        if (!strncmp(m->groups[i].name, name, sizeof m->groups[i].name - 1)) return &m->groups[i];
    if (m->group_count == MOST_GROUPS) return NULL;
    group *g = &m->groups[m->group_count++];
    snprintf(g->name, sizeof g->name, "%.23s", name);
    return g;
}

static ft_status add_error(models *m, const char *name, double measured, const ft_forecast *f, bool memory,
                           const char *description, ft_error *err)
{
    group *g = group_of(m, name);
    if (!g) return ft__fail(err, FT_E_FORMAT, "more than %d kinds of measured models", MOST_GROUPS);
    if (g->count == g->room) {
        size_t room = g->room ? 2 * g->room : 32;
        double *errors = realloc(g->errors, room * sizeof *errors);
        if (!errors) return ft__no_memory(err);
        g->errors = errors;
        g->room = room;
    }
    g->errors[g->count++] = f->ms / measured - 1;
    if (!memory) {
        g->with_interval++;
        g->inside += measured >= f->low_ms && measured <= f->high_ms;
    }
    if (m->each) m->each(m->context, name, ft__measured_gpu(), description, measured, f, memory);
    return FT_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const group *)a)->name, ((const group *)b)->name); }

static ft_status summarise(models *m, ft_accuracy_table *table, ft_error *err)
{
    if (m->group_count == 0) return FT_OK;
    ft_accuracy *lines = realloc(table->lines, (table->count + m->group_count) * sizeof *lines);
    if (!lines) return ft__no_memory(err);
    table->lines = lines;
    qsort(m->groups, m->group_count, sizeof *m->groups, by_name);
    for (size_t i = 0; i < m->group_count; i++) {
        group *g = &m->groups[i];
        ft_accuracy *a = &lines[table->count++];
        *a = (ft_accuracy){.family = "models", .kind = "all", .rows = g->count};
        snprintf(a->variant, sizeof a->variant, "%s", g->name);
        snprintf(a->gpu, sizeof a->gpu, "%s", ft__measured_gpu());
        for (size_t k = 0; k < g->count; k++) {
            a->mean += fabs(g->errors[k]) / (double)g->count;
            a->bias += g->errors[k] / (double)g->count;
        }
        for (size_t k = 0; k < g->count; k++) g->errors[k] = fabs(g->errors[k]);
        qsort(g->errors, g->count, sizeof *g->errors, ft__ascending);
        a->median = ft__median(g->errors, g->count);
        size_t nine_tenths = g->count * 9 / 10;
        a->p90 = g->errors[nine_tenths < g->count ? nine_tenths : g->count - 1];
        a->inside = g->with_interval ? (double)g->inside / (double)g->with_interval : NAN; /* memory has no interval */
    }
    return FT_OK;
}

/* -- requests ---------------------------------------------------------------------------------- */

static json_t *parsed(const char *text)
{
    json_t *out = NULL;
    return ft__json_parse(text, strlen(text), "", &out, NULL) == FT_OK ? out : NULL;
}

/* The first set of rows names its models; later ones carry their config. */
static json_t *config_of(const json_t *row)
{
    static const struct {
        const char *name, *config;
    } known[] = {
#define X(model, json) {model, json},
        MEASURED_MODEL_LIST(X)
#undef X
    };
    json_t *config = json_object_get(row, "config");
    if (json_is_object(config)) return json_incref(config);
    const char *name = json_string_value(json_object_get(row, "model"));
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return parsed(known[i].config);
    return NULL;
}

static const char *text_of(const json_t *row, const char *key, const char *standard)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : standard;
}

/* Switches are written as 1 in some rows and as true in others. */
static bool said(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_true(value) || json_number_value(value) != 0;
}

static const char *execution_of(const json_t *row)
{
    const json_t *compile = json_object_get(row, "compile");
    if (json_is_true(compile)) return "compile";
    const char *mode = json_string_value(compile);
    return !mode ? "eager" : strcmp(mode, "reduce-overhead") ? "compile" : "cuda_graph";
}

/* NULL: a model nobody knows, or out of memory. */
static json_t *request_of(const json_t *row, const char *execution)
{
    const char *mode = text_of(row, "mode", ""), *dtype = text_of(row, "dtype", "");
    json_t *config = config_of(row), *q = config ? json_object() : NULL;
    bool made = ft__key_set(q, FT_KEY_ID_TASK, json_string(strcmp(mode, "inf") ? mode : "forward")) &&
                ft__key_set(q, FT_KEY_ID_MODEL, json_incref(config)) &&
                ft__key_set(q, FT_KEY_ID_GPU, json_string(ft__measured_gpu())) &&
                ft__key_set(q, FT_KEY_ID_MODEL_DTYPE, json_string(strcmp(dtype, "amp") ? dtype : "amp_bf16")) &&
                ft__key_set(q, FT_KEY_ID_MICRO_BATCH, json_incref(json_object_get(row, "batch"))) &&
                ft__key_set(q, FT_KEY_ID_SEQ, json_incref(json_object_get(row, "seq"))) &&
                ft__key_set(q, FT_KEY_ID_ATTENTION, json_string(text_of(row, "attn", "sdpa"))) &&
                ft__key_set(q, FT_KEY_ID_EXECUTION, json_string(execution));
    if (made && !strcmp(mode, "decode"))
        made = ft__key_set(q, FT_KEY_ID_CACHE, json_string(said(row, "static") ? "static" : "dynamic"));
    if (made && !strcmp(mode, "train"))
        made = ft__key_set(q, FT_KEY_ID_OPTIMIZER, json_string(text_of(row, "optimizer", "adamw"))) &&
               ft__key_set(q, FT_KEY_ID_RECOMPUTE, json_string(said(row, "ckpt") ? "full" : "none"));
    json_decref(config);
    if (made) return q;
    json_decref(q);
    return NULL;
}

/* -- cases ------------------------------------------------------------------------------------- */

/* False: it cannot be forecast; `err` says why. Memory is exhausted: FT_E_MEMORY. */
static ft_status ask(models *m, const json_t *row, const char *execution, json_t **answer, ft_error *err)
{
    *answer = NULL;
    json_t *request = request_of(row, execution);
    if (!request)
        return ft__fail(err, FT_E_NAME, "the measured model \"%.60s\" has no config", text_of(row, "model", "?"));
    ft_status status = m->answer(m->user, request, answer, err);
    json_decref(request);
    if (status != FT_OK || json_is_true(json_object_get(*answer, "ok"))) return status;
    const json_t *error = json_object_get(*answer, "error");
    status = ft__fail(err, FT_E_UNSUPPORTED, "%s: %s", text_of(row, "model", "?"), text_of(error, "message", "?"));
    json_decref(*answer);
    *answer = NULL;
    return status;
}

static ft_forecast step_of(const json_t *answer)
{
    return (ft_forecast){.ms = json_number_value(json_object_get(answer, "step_ms")),
                         .low_ms = json_number_value(json_object_get(answer, "low_ms")),
                         .high_ms = json_number_value(json_object_get(answer, "high_ms"))};
}

static void describe(const json_t *row, const char *execution, char *out, size_t room)
{
    int64_t seq = (int64_t)json_integer_value(json_object_get(row, "seq"));
    int at = snprintf(out, room, "%s %s b%lld", text_of(row, "model", "?"), text_of(row, "mode", "?"),
                      (long long)json_integer_value(json_object_get(row, "batch")));
    if (seq > 0 && at > 0 && (size_t)at < room) at += snprintf(out + at, room - (size_t)at, " s%lld", (long long)seq);
    if (at > 0 && (size_t)at < room)
        snprintf(out + at, room - (size_t)at, " %s %s %s%s%s", text_of(row, "dtype", "?"), text_of(row, "attn", "sdpa"),
                 execution, said(row, "ckpt") ? " recompute" : "", said(row, "static") ? " static" : "");
}

static ft_status one_row(models *m, const json_t *row, ft_error *err)
{
    const char *mode = text_of(row, "mode", "?"), *execution = execution_of(row);
    bool eager = !strcmp(execution, "eager");
    double wall = json_number_value(json_object_get(row, "ms"));
    double busy = json_number_value(json_object_get(json_object_get(row, "profile"), "busy_ms"));
    double peak = json_number_value(json_object_get(row, "peak_bytes"));
    char description[128], name[40];
    json_t *walled, *busied = NULL;
    describe(row, execution, description, sizeof description);
    FT_TRY(ask(m, row, execution, &walled, err));
    ft_status status = eager && busy > 0 ? ask(m, row, "ideal", &busied, err) : FT_OK;
    if (status == FT_OK && busy > 0) {
        ft_forecast f = step_of(eager ? busied : walled);
        snprintf(name, sizeof name, "busy %.8s%s", mode, eager ? "" : " compiled");
        status = add_error(m, name, busy, &f, false, description, err);
    }
    if (status == FT_OK && wall > 0) {
        ft_forecast f = step_of(walled);
        snprintf(name, sizeof name, "wall %.8s%s", mode, wall > FT_K_MEASURED_HOST_BOUND * busy ? " host-bound" : "");
        status = add_error(m, name, wall, &f, false, description, err);
    }
    if (status == FT_OK && peak > 0) {
        const json_t *memory = json_object_get(walled, "memory");
        ft_forecast f = {.ms = json_number_value(json_object_get(memory, "peak_bytes")) / gib};
        snprintf(name, sizeof name, "memory %.8s", mode);
        status = add_error(m, name, peak / gib, &f, true, description, err);
    }
    json_decref(walled);
    json_decref(busied);
    return status;
}

/* -- the file ---------------------------------------------------------------------------------- */

static ft_status read_all(const char *path, ft_text *out, ft_error *err)
{
    enum { PORTION = 1 << 16 };
    ft_unzip *file;
    FT_TRY(ft__unzip_open(path, &file, err));
    unsigned char *bytes = malloc(PORTION);
    ft_status status = bytes ? FT_OK : ft__no_memory(err);
    for (size_t got; status == FT_OK && (got = ft__unzip_read(file, bytes, PORTION)) > 0;) {
        ft__text_add_n(out, (const char *)bytes, got);
        if (out->failed) status = ft__no_memory(err);
    }
    if (status == FT_OK && ft__unzip_ended(file, NULL) != FT_UNZIP_WHOLE)
        status = ft__fail_at(err, FT_E_FORMAT, path, 0, 0, "%s", ft__unzip_broken(file));
    ft__unzip_close(file);
    free(bytes);
    return status;
}

static ft_status every_line(models *m, const char *path, const ft_text *text, ft_error *err)
{
    int line = 0;
    for (const char *at = text->at; at && *at;) {
        size_t length = strcspn(at, "\n");
        json_t *row = NULL;
        line++;
        if (length > 0) {
            FT_TRY(ft__json_parse(at, length, path, &row, err));
            ft_status status = one_row(m, row, err);
            json_decref(row);
            if (status == FT_E_MEMORY || status == FT_E_FORMAT) return status;
            m->failed += status != FT_OK;
        }
        at += length + (at[length] == '\n');
    }
    return FT_OK;
}

ft_status ft__validate_models(const char *folder, ft_answerer answer, void *user, ft_measured_case each, void *context,
                              ft_accuracy_table *table, size_t *failed, ft_error *err)
{
    char path[4200];
    ft_text text = {0};
    *failed = 0;
    snprintf(path, sizeof path, "%s/h200/models.jsonl.gz", folder);
    if (!ft__file_exists(path)) return FT_OK;
    models *m = calloc(1, sizeof *m);
    if (!m) return ft__no_memory(err);
    *m = (models){.answer = answer, .user = user, .each = each, .context = context};
    ft_status status = read_all(path, &text, err);
    if (status == FT_OK) status = every_line(m, path, &text, err);
    if (status == FT_OK) status = summarise(m, table, err);
    *failed = m->failed;
    for (size_t i = 0; i < m->group_count; i++) free(m->groups[i].errors);
    ft__text_free(&text);
    free(m);
    return status;
}
