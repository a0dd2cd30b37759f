/* What PyTorch's allocator reserved over steps of the very lengths that ran: whole models (caching.jsonl, which
 * nothing was fitted to) and adapters in batches that were padded (lengths.jsonl, measured after this was written). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "memory/varied.h"
#include "study/context.h"
#include "study/step.h"

enum { MOST = 256 };

static ft_scratch scratch;

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static bool is_true(const json_t *row, const char *key) { return json_is_true(json_object_get(row, key)); }

/* The request of a row, at its longest step. */
static json_t *asked(const json_t *row, double longest)
{
    json_t *model = json_copy(json_object_get(row, "config"));
    const json_t *kind = json_object_get(row, "kind"), *adapters = json_object_get(row, "trained");
    assert_non_null(model);
    if (kind) json_object_set_new(model, "model_type", json_string(json_string_value(kind)));
    if (kind && !strcmp(json_string_value(kind), "bert"))
        json_object_set_new(model, "architectures", json_pack("[s]", "BertForMaskedLM"));
    json_t *r = json_pack("{s:s,s:o,s:s,s:f,s:I,s:s,s:s,s:s,s:s,s:s,s:b}", "task", "train", "model", model, "gpu",
                          "h200_sxm", "batch", figure(row, "batch"), "seq", (json_int_t)longest, "dtype", "bf16",
                          "attention", "sdpa", "execution", "eager", "optimizer", adapters ? "adamw_foreach" : "adamw",
                          "recompute", is_true(row, "checkpoint") ? "full" : "none", "expandable_segments",
                          is_true(row, "expandable"));
    assert_non_null(r);
    json_object_set_new(r, "batch", json_integer((json_int_t)figure(row, "batch")));
    if (adapters)
        json_object_set_new(r, "lora",
                            json_pack("{s:i,s:[s,s],s:i,s:s}", "rank", 8, "targets", "q_proj", "v_proj", "dropout", 0,
                                      "dtype", "fp32"));
    return r;
}

/* Reserved bytes after the row's own steps, over what was seen. */
static double share_of(const json_t *row)
{
    const json_t *steps = json_object_get(row, "steps");
    double lengths[MOST], most = 0, least = INFINITY;
    ft_varied v = {.lengths = lengths, .steps = (int)json_array_size(steps)};
    ft_model_request r;
    ft_error err = {0};
    ft_memory peak;
    assert_true(v.steps > 0 && v.steps <= MOST);
    for (int i = 0; i < v.steps; i++) {
        lengths[i] = json_number_value(json_array_get(json_array_get(steps, (size_t)i), 0));
        most = fmax(most, lengths[i]);
        least = fmin(least, lengths[i]);
    }
    json_t *request = asked(row, most);
    if (ft__model_request_of(golden_ft, &scratch, request, &r, &err) != FT_OK) fail_msg("%s", err.message);
    assert_int_equal(ft__scratch_empty(&scratch, &err), FT_OK);
    const double at[FT_VARIED_GRAPHS] = {least, floor((least + most) / 2), most};
    r.work.padded = json_object_get(row, "trained") && r.work.batch > 1;
    for (int i = 0; i < FT_VARIED_GRAPHS; i++) {
        ft_graph *g = NULL;
        v.at[i] = at[i];
        v.work[i] = r.work;
        v.work[i].seq = (int64_t)at[i];
        assert_int_equal(ft__model_graph(r.arch, &v.work[i], scratch.arena, &g, &err), FT_OK);
        v.graph[i] = g;
    }
    double beyond;
    assert_int_equal(ft__step_memory(v.graph[2], &v.work[2], r.device, &peak, &err), FT_OK);
    assert_int_equal(ft__varied_beyond(&v, r.device, &beyond, &err), FT_OK);
    assert_true(beyond >= 0);
    json_decref(request);
    return (peak.peak_bytes + beyond) / figure(row, "reserved_bytes");
}

static void hold(const char *file, int rows_wanted, double mean, double each)
{
    json_t *rows = golden_rows(file), *row;
    double sum = 0;
    int count = 0;
    size_t n;
    json_array_foreach (rows, n, row) {
        const char *mode = json_string_value(json_object_get(row, "mode"));
        const bool varies = json_object_get(row, "varied") || json_object_get(row, "trained");
        if (!varies || (mode && strcmp(mode, "train") != 0)) continue;
        const double off = fabs(share_of(row) - 1);
        golden_holds(off < each, "%s: reserved %.1f %% off", json_string_value(json_object_get(row, "name")),
                     100 * off);
        sum += off;
        count++;
    }
    json_decref(rows);
    assert_int_equal(count, rows_wanted);
    golden_holds(sum / count < mean, "%s: reserved %.2f %% off", file, 100 * sum / count);
    ft__scratch_free(&scratch);
    memset(&scratch, 0, sizeof scratch);
}

static void whole_models(void **state)
{
    (void)state;
    hold("measurements/h200/caching.jsonl", 10, 0.012, 0.05);
}

static void adapters_in_padded_batches(void **state)
{
    (void)state;
    hold("measurements/h200/lengths.jsonl", 6, 0.015, 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_models),
        cmocka_unit_test(adapters_in_padded_batches),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
