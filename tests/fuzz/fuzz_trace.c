/* Profiler traces, read and joined, without the report behind (fuzz_trace_report): whatever bytes come, operators whose
 * parents came before them, work in order that ends after it begins, or an error that says what. The first byte is the
 * report's. */
#include "base/json.h"
#include "fuzz.h"
#include "trace/record.h"

static void check_text(const char *text)
{
    json_t *valid = json_string(text); /* NULL where the text is not UTF-8 */
    FUZZ_CHECK(valid);
    json_decref(valid);
}

static void check_record(const ft_record *r)
{
    for (size_t i = 0; i < r->op_count; i++) FUZZ_CHECK(r->ops[i].parent < (int32_t)i);
    for (size_t i = 0; i < r->work_count; i++) {
        const ft_trace_work *w = &r->work[i];
        FUZZ_CHECK(w->end >= w->start && (i == 0 || w->start >= r->work[i - 1].start));
        FUZZ_CHECK(w->step < (int32_t)r->step_count);
    }
    FUZZ_CHECK(r->work_count == 0 || r->step_count > 0);
    check_text(r->broken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (length < 1) return 0;
    ft_slices *from;
    ft_error err = {0};
    ft_record r = {0};
    FUZZ_CHECK(ft__slices_of(data + 1, length - 1, &from, &err) == FT_OK);
    ft_status status = ft__record_read(from, (size_t)64 << 20, &r, &err);
    ft__slices_close(from);
    if (status == FT_OK) {
        check_record(&r);
    } else {
        FUZZ_CHECK(err.code == status && err.message[0]);
        check_text(err.message);
        check_text(err.where);
    }
    ft__record_free(&r);
    return 0;
}
