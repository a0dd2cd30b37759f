/* Calibrations. An input is used three times: as a file of measured points, read or refused with a reason; as a
 * calibration file, where the checksum stops nearly everything; and as patches to a sound one with a checksum that fits
 * (every three bytes a place in its records and the byte to put there), so that the checks behind it are reached and
 * what passes them forecasts finite, ordered times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu.h"
#include "fuzz.h"
#include "graph/operator.h"
#include "kernel/calibration.h"
#include "kernel/kernel.h"
#include "request/calibration_points.h"

enum { TREES = 2, WIDTH = 3, VALUES = 2 * FT_PROCESS_LANES * (WIDTH + 1) };

typedef struct records {
    ft_calibrated expert;
    ft_tree trees[TREES];
    float values[VALUES];
} records;

static void ask(const void *bytes, size_t size)
{
    static ft_predictor *base;
    static ft_device device;
    if (!base) {
        FUZZ_CHECK(ft__predictor_open(NULL, &base, NULL) == FT_OK);
        FUZZ_CHECK(ft__catalogue_find("h200_sxm", &device, NULL) == FT_OK);
    }
    void *file = malloc(size ? size : 1); /* a block of its own size, so that a read behind the end is seen */
    FUZZ_CHECK(file);
    if (size) memcpy(file, bytes, size);
    ft_calibration c;
    ft_error err = {0};
    ft_status status = ft__calibration_read(file, size, "fuzz.ftcal", &c, &err);
    if (status == FT_OK) {
        bool sound = true; /* what ft__predictor_calibrate checks further */
        for (size_t i = 0; i < c.file.expert_count; i++) {
            const ft_expert *e = &c.file.experts[i].expert;
            sound = sound && (!ft__inherited(&c.file.experts[i]) ||
                              ((size_t)e->tree_first + e->tree_count <= base->trees.count &&
                               (size_t)e->sigma_first + e->sigma_count <= base->trees.count));
        }
        ft_predictor with = *base;
        with.calibration = &c;
        ft_op op;
        ft_forecast f;
        ft__op_init("softmax", &op);
        op.u.row.rows = 4096, op.u.row.cols = 1000;
        if (sound) {
            FUZZ_CHECK(ft__kernel_forecast(&with, &device, &op, 0.9, &f, NULL) == FT_OK);
            FUZZ_CHECK(isfinite(f.ms) && isfinite(f.high_ms) && f.low_ms > 0 && f.low_ms <= f.ms && f.ms <= f.high_ms);
        }
    } else {
        FUZZ_CHECK(status == FT_E_FORMAT && err.code == status && err.message[0]);
    }
    free(file);
}

static void read_points(const uint8_t *data, size_t size)
{
    ft_points points;
    ft_error err = {0};
    ft_status status = ft__points_read(fuzz_file(0, data, size), 0, &points, &err);
    if (status != FT_OK) {
        FUZZ_CHECK(err.code == status && err.message[0]);
        return;
    }
    FUZZ_CHECK(points.rows.count > 0 && points.rows.gpu_count == 1);
    for (size_t i = 0; i < points.rows.count; i++) {
        const ft_row *row = &points.rows.at[i];
        FUZZ_CHECK(row->ms > 0 && isfinite(row->ms) && row->weight > 0 && row->op.name);
        FUZZ_CHECK(ft__op_check(&row->op, &points.rows.gpus[0], NULL) == FT_OK);
    }
    ft__points_free(&points);
}

static void sound_records(records *out)
{
    ft_op op;
    int variant;
    ft__op_init("softmax", &op);
    const ft_family *family = ft__family_of(&op, &variant);
    FUZZ_CHECK(family);
    memset(out, 0, sizeof *out);
    ft_expert *e = &out->expert.expert;
    strcpy(e->family, family->name);
    strcpy(e->variant, family->variant_name(variant));
    strcpy(e->gpu, "h200_sxm");
    e->rows = 10;
    e->tree_count = TREES;
    e->sigma_base = -3;
    for (int k = 0; k < FT_KIN_LEVELS; k++) {
        e->weight[k] = 1;
        for (int q = 0; q < FT_QUANTILES; q++) e->spread_low[k][q] = e->spread_high[k][q] = (float)(1 + q);
    }
    for (int t = 0; t < family->parameter_count; t++) e->theta[t] = family->parameters[t].start;
    out->expert.process = (ft_process){.blocks = 2, .width = WIDTH, .feature = {0, 3, 4}, .scale = {1, 0.5f, 0.1f}};
    for (int i = 0; i < VALUES; i++) out->values[i] = (float)(i % 7) * 0.01f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    records r;
    void *file;
    size_t length;
    read_points(data, size);
    ask(data, size);
    sound_records(&r);
    for (size_t i = 0; i + 2 < size; i += 3)
        ((unsigned char *)&r)[((size_t)data[i] << 8 | data[i + 1]) % sizeof r] = data[i + 2];
    const ft_calibration_records records = {1, &r.expert, 1, r.trees, TREES, r.values, VALUES, "{}", 2};
    FUZZ_CHECK(ft__calibration_write(&records, &file, &length, NULL) == FT_OK);
    ask(file, length);
    free(file);
    return 0;
}
