/* Training steps that were measured as a blind check (data/measurements/h200/catalogue.jsonl: models at full depth;
 * families.jsonl: architectures that had only been read): nothing is fitted to them. The host of that machine was a
 * quarter faster than the one in the table, so steps that it paces come out too long; kernels and memory are what is
 * held. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

typedef struct mean_error {
    double busy, peak, reserved;
} mean_error;

/* How far forecasts of these rows are off, each within `each`; a row's model is a name or a config. */
static mean_error compare(const char *path, size_t least, mean_error each)
{
    json_t *rows = golden_rows(path), *row;
    mean_error e = {0};
    size_t n;
    assert_true(json_array_size(rows) >= least);
    json_array_foreach (rows, n, row) {
        const json_t *said = json_object_get(row, "model");
        char *model = json_dumps(said, JSON_ENCODE_ANY | JSON_COMPACT);
        assert_non_null(model);
        const char *name = json_string_value(json_is_object(said) ? json_object_get(said, "model_type") : said);
        json_t *a =
            golden_ask("{\"task\":\"train\",\"model\":%s,\"gpu\":\"h200_sxm\",\"batch\":%d,\"seq\":%d,"
                       "\"dtype\":\"bf16\",\"attention\":\"sdpa\",\"execution\":\"eager\",\"recompute\":\"%s\"}",
                       model, (int)figure(row, "batch"), (int)figure(row, "seq"),
                       json_string_value(json_object_get(row, "recompute")));
        double ms = golden_figure(a, "busy_ms"), bytes = golden_figure(a, "memory.peak_bytes"),
               held = golden_figure(a, "memory.reserved_bytes");
        golden_near(name, ms, figure(row, "busy_ms"), each.busy);
        golden_near(name, bytes, figure(row, "peak_bytes"), each.peak);
        golden_near(name, held, figure(row, "reserved_bytes"), each.reserved);
        e.busy += fabs(ms / figure(row, "busy_ms") - 1);
        e.peak += fabs(bytes / figure(row, "peak_bytes") - 1);
        e.reserved += fabs(held / figure(row, "reserved_bytes") - 1);
        json_decref(a);
        free(model);
    }
    double count = (double)json_array_size(rows);
    json_decref(rows);
    return (mean_error){e.busy / count, e.peak / count, e.reserved / count};
}

static void holds(mean_error found, mean_error most)
{
    golden_holds(found.busy < most.busy, "busy time %.1f %% off", 100 * found.busy);
    golden_holds(found.peak < most.peak, "peak %.2f %% off", 100 * found.peak);
    golden_holds(found.reserved < most.reserved, "reserved %.1f %% off", 100 * found.reserved);
}

static void whole_models_that_nobody_fitted(void **state)
{
    (void)state;
    holds(compare("measurements/h200/catalogue.jsonl", 13, (mean_error){0.08, 0.005, 0.09}),
          (mean_error){0.05, 0.001, 0.045});
}

static void architectures_that_were_read_before_they_were_measured(void **state)
{
    (void)state;
    holds(compare("measurements/h200/families.jsonl", 19, (mean_error){0.08, 0.01, 0.08}),
          (mean_error){0.035, 0.001, 0.03});
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Of sorted values. */
static double median(const double *at, size_t count) { return (at[(count - 1) / 2] + at[count / 2]) / 2; }

/* Hybrids, indexers, compressed attention, models that see, at reduced depth (architectures.jsonl): forward, and
 * forward with backward. Forecast before they were measured; what was learned of them since is in
 * docs/architectures.md. Loops written out in Python were far off until their gradients were understood (jamba, mamba's
 * scan: a tenth of the time) and where decays are by channel (kimi_linear: a quarter): the worst is held too. */
typedef struct blind_bounds {
    size_t least;
    double median, mean, peak; /* errors: of busy time, of peak memory (the median) */
    size_t apart;              /* so many of the worst are not understood; the next is held to `worst` */
    double worst;
} blind_bounds;

/* As it was asked before it was measured, or of the sizes that a row has. Busy times are the profiler's, each of a pass
 * after a pause: a pass that only goes forward is asked without its host, as kernels by themselves, from rest. */
static json_t *asked_of(const json_t *row)
{
    json_t *asked = json_object_get(row, "request"), *request;
    if (asked) {
        request = json_copy(asked);
        if (!strcmp(json_string_value(json_object_get(request, "task")), "forward"))
            json_object_set_new(request, "execution", json_string("ideal"));
        return request;
    }
    request = json_pack("{s:O, s:O, s:O, s:O, s:s, s:s, s:s}", "model", json_object_get(row, "model"), "task",
                        json_object_get(row, "task"), "batch", json_object_get(row, "batch"), "seq",
                        json_object_get(row, "seq"), "gpu", "h200_sxm", "dtype", "bf16", "attention", "sdpa");
    assert_non_null(request);
    if (!strcmp(json_string_value(json_object_get(row, "task")), "train"))
        json_object_set_new(request, "optimizer", json_string("none"));
    else
        json_object_set_new(request, "execution", json_string("ideal"));
    if (json_object_get(row, "images")) json_object_set(request, "images", json_object_get(row, "images"));
    if (json_object_get(row, "image_size")) json_object_set(request, "image_size", json_object_get(row, "image_size"));
    return request;
}

static void blind_round(const char *path, blind_bounds most)
{
    enum { MOST = 192 };
    double busy[MOST], peak[MOST];
    json_t *rows = golden_rows(path), *row;
    size_t n, count = json_array_size(rows);
    assert_true(count >= most.least && count <= MOST);
    json_array_foreach (rows, n, row) {
        json_t *request = asked_of(row);
        char *text = json_dumps(request, JSON_COMPACT);
        assert_non_null(text);
        json_t *a = golden_ask("%s", text);
        busy[n] = fabs(golden_figure(a, "busy_ms") / figure(row, "busy_ms") - 1);
        const json_t *kept = json_object_get(row, "earlier_bytes"); /* of passes before it, in its peak */
        double own = figure(row, "peak_bytes") - (double)json_integer_value(kept);
        peak[n] = fabs(golden_figure(a, "memory.peak_bytes") / own - 1);
        json_decref(a);
        free(text);
        json_decref(request);
    }
    json_decref(rows);
    qsort(busy, count, sizeof *busy, by_size);
    qsort(peak, count, sizeof *peak, by_size);
    double mean = 0;
    for (n = 0; n < count; n++) mean += busy[n] / (double)count;
    golden_holds(median(busy, count) < most.median, "busy time %.1f %% off, the median", 100 * median(busy, count));
    golden_holds(mean < most.mean, "busy time %.1f %% off in the mean", 100 * mean);
    double worst = busy[count - 1 - most.apart];
    golden_holds(worst < most.worst, "busy time %.1f %% off, the worst that is understood", 100 * worst);
    golden_holds(median(peak, count) < most.peak, "peak %.1f %% off, the median", 100 * median(peak, count));
}

/* Ovis2's tower, with an image, is a fifth too short: nobody knows why. */
static void layers_of_this_year(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures.jsonl", (blind_bounds){160, 0.035, 0.043, 0.015, 0, 0.205});
}

/* The seventh round, mended since where data sufficed: attention that is written out, experts in a loop. The worst is
 * HRM's training, whose small kernels were too long as long as a graph's node was part of them (15 % low until
 * then). */
static void a_seventh_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_seventh.jsonl", (blind_bounds){44, 0.035, 0.045, 0.02, 0, 0.165});
}

/* The eighth: towers that are given images, decoders of bert's kin. */
static void an_eighth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_eighth.jsonl", (blind_bounds){32, 0.035, 0.04, 0.01, 0, 0.12});
}

/* The ninth: sinks that scale, gates that are clamped, a recurrence in a loop. */
static void a_ninth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_ninth.jsonl", (blind_bounds){31, 0.03, 0.03, 0.005, 0, 0.08});
}

/* The tenth: indexers that multiply by broadcasting, experts in a loop, heads of 512, convolutions over queries and
 * keys, biases by distance. The worst is cpmant going forward, whose prompt of its own and masks in its scores are not
 * modelled. */
static void a_tenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_tenth.jsonl", (blind_bounds){46, 0.048, 0.056, 0.005, 1, 0.14});
}

/* The eleventh, at published widths: hybrids, images, mixtures. */
static void an_eleventh_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_eleventh.jsonl", (blind_bounds){34, 0.032, 0.038, 0.005, 0, 0.11});
}

/* The twelfth: other widths of what was measured before, encoders, sound, three types new here. Mixtral's grouped
 * products are as wide as none before (a sixth low). */
static void a_twelfth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_twelfth.jsonl", (blind_bounds){46, 0.033, 0.045, 0.005, 0, 0.17});
}

/* The thirteenth: seven types new here, eleven that only operators were measured of, hybrids, images. */
static void a_thirteenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_thirteenth.jsonl", (blind_bounds){52, 0.032, 0.042, 0.003, 0, 0.14});
}

/* Models of the catalogue that are known by the graph of their operators, at full size, forecast before they were
 * measured. HunyuanVideo's mask, one row for all queries, was read as one for each (a quarter too long), and Swin's
 * windows as if nothing of a tile were padded and rows of 49 keys as good as others (a sixth too short). */
static void models_by_their_graphs(void **state)
{
    (void)state;
    blind_round("measurements/h200/catalogue_graphs.jsonl", (blind_bounds){22, 0.045, 0.055, 0.012, 0, 0.16});
}

/* Nets of torchvision and ultralytics, and more of transformers, by their graphs, forecast before they were measured.
 * Apart stand YOLOS, whose positions are resized channels last, DeepLab's training, whose single pixels are resized by
 * atomics that all meet, and RegNet's groups, for which cuDNN takes older kernels. */
static void nets_by_their_graphs(void **state)
{
    (void)state;
    blind_round("measurements/h200/catalogue_nets.jsonl", (blind_bounds){32, 0.03, 0.075, 0.01, 5, 0.16});
}

/* The fifteenth: whole checkpoints at their full size. The two apart are an encoder-decoder of short texts and a
 * mixture of small experts. */
static void a_fifteenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_fifteenth.jsonl", (blind_bounds){51, 0.036, 0.042, 0.002, 2, 0.11});
}

/* The seventeenth: whole checkpoints in other sizes, after kernels of few microseconds were mended. */
static void a_seventeenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_seventeenth.jsonl", (blind_bounds){56, 0.02, 0.024, 0.001, 0, 0.105});
}

/* The sixteenth: whole checkpoints at short and odd lengths, where much of what kernels read lies in the cache. */
static void a_sixteenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_sixteenth.jsonl", (blind_bounds){58, 0.04, 0.043, 0.002, 0, 0.13});
}

/* torch.gather keeps the scores that it took from: DeBERTa's two tables of a layer, a quarter of its step's peak. */
static void what_a_gather_took_from_is_kept(void **state)
{
    (void)state;
    json_t *a = golden_ask("%s", "{\"model\":\"deberta-v3-large\",\"task\":\"train\",\"batch\":8,\"seq\":256,"
                                 "\"gpu\":\"h200_sxm\",\"dtype\":\"bf16\",\"optimizer\":\"none\"}");
    golden_near("peak", figure(json_object_get(a, "memory"), "peak_bytes"), 7443888640, 0.02);
    json_decref(a);
}

/* The fourteenth: other sizes of what was measured before, after the thirteenth was mended. */
static void a_fourteenth_round(void **state)
{
    (void)state;
    blind_round("measurements/h200/architectures_fourteenth.jsonl", (blind_bounds){32, 0.026, 0.028, 0.002, 0, 0.08});
}

/* Encoders of words, images and sound, and denoisers of diffusers (encoders.jsonl), forecast before they were
 * measured and mended since. The worst but one is left to what is not understood: wav2vec2's convolution of 128 samples
 * in groups of 48 channels, for which cuDNN takes a kernel without tensor cores. */
static void encoders_and_denoisers(void **state)
{
    enum { MOST = 64 };
    double busy[MOST], peak[MOST], mean = 0;
    json_t *rows = golden_rows("measurements/h200/encoders.jsonl"), *row;
    size_t n, count = json_array_size(rows);
    (void)state;
    assert_true(count >= 25 && count <= MOST);
    json_array_foreach (rows, n, row) {
        json_t *request = json_copy(json_object_get(row, "request"));
        assert_non_null(request);
        json_object_set(request, "task", json_object_get(row, "task"));
        json_object_set_new(request, "gpu", json_string("h200_sxm"));
        json_object_set_new(request, "dtype", json_string("bf16"));
        json_object_set_new(request, "attention", json_string("sdpa"));
        if (!strcmp(json_string_value(json_object_get(row, "task")), "train"))
            json_object_set_new(request, "optimizer", json_string("none"));
        char *text = json_dumps(request, JSON_COMPACT);
        assert_non_null(text);
        json_t *a = golden_ask("%s", text);
        busy[n] = fabs(golden_figure(a, "busy_ms") / figure(row, "busy_ms") - 1);
        peak[n] = fabs(golden_figure(a, "memory.peak_bytes") / figure(row, "peak_bytes") - 1);
        json_decref(a);
        free(text);
        json_decref(request);
    }
    json_decref(rows);
    qsort(busy, count, sizeof *busy, by_size);
    qsort(peak, count, sizeof *peak, by_size);
    for (n = 0; n < count; n++) mean += busy[n] / (double)count;
    golden_holds(median(busy, count) < 0.055, "busy time %.1f %% off, the median", 100 * median(busy, count));
    golden_holds(mean < 0.12, "busy time %.1f %% off in the mean", 100 * mean);
    golden_holds(busy[count - 2] < 0.32, "busy time %.1f %% off, the worst but one", 100 * busy[count - 2]);
    golden_holds(median(peak, count) < 0.045, "peak %.1f %% off, the median", 100 * median(peak, count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_models_that_nobody_fitted),
                                       cmocka_unit_test(architectures_that_were_read_before_they_were_measured),
                                       cmocka_unit_test(layers_of_this_year),
                                       cmocka_unit_test(a_seventh_round),
                                       cmocka_unit_test(an_eighth_round),
                                       cmocka_unit_test(a_ninth_round),
                                       cmocka_unit_test(a_tenth_round),
                                       cmocka_unit_test(an_eleventh_round),
                                       cmocka_unit_test(a_twelfth_round),
                                       cmocka_unit_test(a_thirteenth_round),
                                       cmocka_unit_test(a_fourteenth_round),
                                       cmocka_unit_test(models_by_their_graphs),
                                       cmocka_unit_test(nets_by_their_graphs),
                                       cmocka_unit_test(a_fifteenth_round),
                                       cmocka_unit_test(a_sixteenth_round),
                                       cmocka_unit_test(a_seventeenth_round),
                                       cmocka_unit_test(what_a_gather_took_from_is_kept),
                                       cmocka_unit_test(encoders_and_denoisers)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
