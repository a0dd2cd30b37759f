/* What to change when a step does not fit, over a made-up model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory/fits.h"

/* A made-up model: bytes by what the workload says, and room for `*user` of them. */
static ft_status made_up(const ft_workload *work, void *user, ft_memory *out, ft_error *err)
{
    if (work->recompute == FT_RECOMPUTE_SELECTIVE) return ft__fail(err, FT_E_UNSUPPORTED, "nobody wrote that");
    double weights = 10 * (ft_dtype_bytes(work->dtype) / 4), each = 4;
    if (work->attention == FT_EAGER) each += 8;
    if (work->recompute == FT_RECOMPUTE_FULL) each /= 4;
    double states = work->lora_rank ? 0.1 : weights * (work->optimizer == FT_ADAMW_8BIT ? 1.5 : 3);
    double bytes = weights + states + each * (double)work->batch;
    *out = (ft_memory){.reserved_bytes = bytes, .capacity_bytes = *(double *)user, .remedy = ""};
    out->verdict = bytes <= out->capacity_bytes ? FT_FIT_YES : FT_FIT_NO;
    out->fits = out->verdict != FT_FIT_NO;
    return FT_OK;
}

static void the_smallest_change_that_fits_is_found(void **state)
{
    (void)state;
    static const struct {
        double room;
        ft_attention_kind attention;
        int64_t batch;
        const char *text;
        int64_t largest, gpus;
    } cases[] = {
        {200, FT_EAGER, 8, "", 8, 1},
        {80, FT_EAGER, 8, "attention: flash", 3, 1},
        {60, FT_FLASH, 8, "batch: 5 accumulated 2 times", 5, 1},
        {50, FT_EAGER, 8, "attention: flash, batch: 2 accumulated 4 times", 0, 1},
        {42, FT_FLASH, 1, "recompute: full", 0, 1},
        {30, FT_FLASH, 1, "dtype: bf16", 0, 1},
        {18, FT_FLASH, 1, "dtype: bf16, optimizer: adamw_8bit", 0, 1},
        {4, FT_FLASH, 1, "at least 11 GPUs of this memory", 0, 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double room = cases[i].room;
        ft_workload work = {.task = FT_TRAIN,
                            .dtype = FT_FP32,
                            .kv_dtype = FT_FP32,
                            .attention = cases[i].attention,
                            .batch = cases[i].batch,
                            .accumulate = 1,
                            .optimizer = FT_ADAMW};
        ft_remedy r;
        assert_int_equal(ft__memory_remedy(&work, made_up, &room, &r, NULL), FT_OK);
        if (strcmp(r.text, cases[i].text)) fail_msg("room %g: \"%s\", expected \"%s\"", room, r.text, cases[i].text);
        assert_int_equal(r.largest_batch, cases[i].largest);
        assert_int_equal(r.gpus, cases[i].gpus);
        if (r.gpus == 1) {
            ft_memory again;
            assert_int_equal(made_up(&r.work, &room, &again, NULL), FT_OK);
            assert_true(again.fits);
        }
    }
}

static void the_largest_batch_fits_and_the_next_does_not(void **state)
{
    (void)state;
    for (int64_t batch = 0; batch <= 300; batch += 7) {
        double room = 40 + 4 * (double)batch + 1;
        ft_workload work = {.task = FT_TRAIN, .dtype = FT_FP32, .batch = 512, .accumulate = 1};
        ft_remedy r;
        assert_int_equal(ft__memory_remedy(&work, made_up, &room, &r, NULL), FT_OK);
        assert_int_equal(r.largest_batch, batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_change_that_fits_is_found),
        cmocka_unit_test(the_largest_batch_fits_and_the_next_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
