/* measured.c: reading data/measurements/h200. */
#include "measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "study/measured_model_list.h"

/* -- measured rows ----------------------------------------------------------------------------- */

json_t *measured;

static int read_rows(const char *name)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024];
    snprintf(path, sizeof path, "%s/data/measurements/h200/%s.jsonl.gz", root ? root : ".", name);
    gzFile f = gzopen(path, "rb");
    enum { LONGEST = 1 << 20 };
    char *line = malloc(LONGEST);
    if (!f || !line) return -1;
    while (gzgets(f, line, LONGEST)) {
        json_t *row = json_loads(line, 0, NULL);
        if (!row || json_array_append_new(measured, row)) return -1;
    }
    free(line);
    return gzclose(f) == Z_OK ? 0 : -1;
}

int measured_open(void **state)
{
    measured = json_array();
    return golden_open(state) || !measured || read_rows("models") || read_rows("architectures") ? -1 : 0;
}

int measured_close(void **state)
{
    json_decref(measured);
    return golden_close(state);
}

const char *measured_word(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

double measured_figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

double measured_busy(const json_t *row) { return measured_figure(json_object_get(row, "profile"), "busy_ms"); }

static const char *execution_of(const json_t *row)
{
    const json_t *c = json_object_get(row, "compile");
    return json_is_true(c) ? "compile" : json_is_string(c) ? "cuda_graph" : "eager";
}

const json_t *measured_row(const measured_case *p)
{
    size_t i;
    json_t *row;
    json_array_foreach (measured, i, row) {
        if (strcmp(measured_word(row, "model"), p->model) || strcmp(measured_word(row, "mode"), p->mode)) continue;
        if (strcmp(measured_word(row, "dtype"), p->dtype) || !strcmp(measured_word(row, "set"), "sustained")) continue;
        if (measured_figure(row, "batch") != p->batch || measured_figure(row, "seq") != p->seq) continue;
        if ((measured_figure(row, "ckpt") > 0) != p->recomputed || strcmp(execution_of(row), p->execution)) continue;
        return row;
    }
    fail_msg("no measured %s %s b%d s%d %s %s", p->model, p->mode, p->batch, p->seq, p->dtype, p->execution);
    return NULL;
}

static json_t *config_of(const json_t *row)
{
    static const char *const known[][2] = {
#define X(model, json) {model, json},
        MEASURED_MODEL_LIST(X)
#undef X
    };
    json_t *config = json_object_get(row, "config");
    if (config) return json_incref(config);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], measured_word(row, "model"))) return json_loads(known[i][1], 0, NULL);
    fail_msg("no config of %s", measured_word(row, "model"));
    return NULL;
}

json_t *measured_request(const json_t *row)
{
    const char *mode = measured_word(row, "mode"), *dtype = measured_word(row, "dtype"),
               *attention = measured_word(row, "attn");
    json_t *q = json_pack("{s:s,s:o,s:s,s:s,s:O,s:O,s:s,s:s}", "task", strcmp(mode, "inf") ? mode : "forward", "model",
                          config_of(row), "gpu", "h200_sxm", "dtype", strcmp(dtype, "amp") ? dtype : "amp_bf16",
                          "batch", json_object_get(row, "batch"), "seq", json_object_get(row, "seq"), "attention",
                          *attention ? attention : "sdpa", "execution", execution_of(row));
    assert_non_null(q);
    if (!strcmp(mode, "decode"))
        json_object_set_new(q, "cache", json_string(measured_figure(row, "static") > 0 ? "static" : "dynamic"));
    if (!strcmp(mode, "train"))
        json_object_set_new(q, "recompute", json_string(measured_figure(row, "ckpt") > 0 ? "full" : "none"));
    return q;
}

json_t *measured_answer(const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    assert_non_null(text);
    json_t *answer = golden_ask("%s", text);
    free(text);
    return answer;
}

/* -- pairs ------------------------------------------------------------------------------------- */

typedef struct timed {
    int run, batch, seq, recomputed, compiled;
    char rows[16], model[32], mode[8], dtype[8];
    double ms;
} timed;

static bool read_timed(const char *line, timed *t)
{
    return sscanf(line, "%d,%15[^,],%31[^,],%7[^,],%7[^,],%d,%d,%d,%d,%lf", &t->run, t->rows, t->model, t->mode,
                  t->dtype, &t->batch, &t->seq, &t->recomputed, &t->compiled, &t->ms) == 10;
}

static bool same_step(const timed *a, const timed *b)
{
    return a->run == b->run && a->batch == b->batch && a->seq == b->seq && !strcmp(a->rows, b->rows) &&
           !strcmp(a->model, b->model) && !strcmp(a->mode, b->mode);
}

/* The config and the attention come from any row of the model in the file that the pair names. */
static json_t *timed_request(const timed *t)
{
    bool second = !strcmp(t->rows, "architectures");
    size_t i;
    json_t *row;
    json_array_foreach (measured, i, row) {
        bool configured = json_object_get(row, "config") != NULL;
        if (configured != second || strcmp(measured_word(row, "model"), t->model)) continue;
        if (strcmp(measured_word(row, "mode"), t->mode) || !strcmp(measured_word(row, "dtype"), "fp32")) continue;
        if (!strcmp(measured_word(row, "set"), "recheck")) continue;
        json_t *own = json_copy(row);
        json_object_set_new(own, "batch", json_integer(t->batch));
        json_object_set_new(own, "seq", json_integer(t->seq));
        json_object_set_new(own, "dtype", json_string(t->dtype));
        json_object_set_new(own, "ckpt", json_integer(t->recomputed));
        json_object_set_new(own, "compile", json_boolean(t->compiled));
        json_t *request = measured_request(own);
        json_decref(own);
        return request;
    }
    fail_msg("no row of %s in %s", t->model, t->rows);
    return NULL;
}

size_t measured_pairs(measured_pair *out, size_t room)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024], line[512];
    enum { MOST_PLAIN = 128 };
    static timed plain[MOST_PLAIN];
    size_t plains = 0, count = 0;
    snprintf(path, sizeof path, "%s/data/measurements/h200/pairs.csv", root ? root : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        timed t = {0};
        if (!read_timed(line, &t)) continue; /* the heading */
        bool autocast = !strcmp(t.dtype, "amp");
        if (!autocast && !t.recomputed && !t.compiled) {
            assert_true(plains < MOST_PLAIN);
            plain[plains++] = t;
            continue;
        }
        size_t at = plains;
        while (at > 0 && !same_step(&plain[at - 1], &t)) at--;
        assert_true(at > 0 && count < room);
        const timed *p = &plain[at - 1];
        json_t *before = timed_request(t.compiled ? p : &t);
        out[count] = (measured_pair){.run = t.run,
                                     .change = t.compiled     ? "compile (torch.compile)"
                                               : t.recomputed ? "no recomputation"
                                                              : "bf16 instead of amp_bf16",
                                     .request = before,
                                     .before_ms = t.compiled ? p->ms : t.ms,
                                     .after_ms = t.compiled ? t.ms : p->ms};
        out[count++].model = p->model;
    }
    fclose(f);
    return count;
}
