/* page_csv.c: figures as comma-separated values. */
#include <inttypes.h>
#include <string.h>

#include "report/html/page.h"

static void number(ft_text *out, double value)
{
    ft__text_add(out, ",");
    ft__text_add_number(out, value, 6);
}

/* Quoted as RFC 4180 says where it must be. */
static void word(ft_text *out, const char *text)
{
    if (!text) text = "";
    if (!strpbrk(text, ",\"\n\r")) {
        ft__text_add(out, text);
        return;
    }
    ft__text_add(out, "\"");
    for (; *text; text++) {
        if (*text == '"') ft__text_add(out, "\"");
        ft__text_add_n(out, text, 1);
    }
    ft__text_add(out, "\"");
}

bool ft__csv_step(ft_text *out, const ft_step_view *v)
{
    size_t count = 0;
    const ft_merged *kernels = ft__merge_kernels(v, &count);
    if (!kernels) return false;
    ft__text_add(out, "block,kernel,op,phase,count,total_ms,ms,low_ms,high_ms,flops,bytes,bound,source\n");
    for (size_t i = 0; i < count; i++) {
        const ft_merged *k = &kernels[i];
        const char *const words[] = {k->block ? k->block->name : "", k->node->name, k->node->op.name,
                                     ft__phase_name(k->node->phase)};
        for (int w = 0; w < 4; w++) {
            if (w) ft__text_add(out, ",");
            word(out, words[w]);
        }
        const double figures[] = {
            k->count,           k->total_ms,       k->forecast->ms, k->forecast->low_ms, k->forecast->high_ms,
            k->forecast->flops, k->forecast->bytes};
        for (int n = 0; n < 7; n++) number(out, figures[n]);
        ft__text_addf(out, ",%s,%s\n", ft_bound_name(k->forecast->bound), ft_source_name(k->forecast->source));
    }
    return !out->failed;
}

bool ft__csv_infer(ft_text *out, const ft_infer *r)
{
    ft__text_add(out, "task,seq,batch,ms,low_ms,high_ms,per_s,fits\n");
    for (int task = 0; task < (r->generates ? 2 : 1); task++)
        for (size_t s = 0; s < r->seq_count; s++)
            for (size_t b = 0; b < r->batch_count; b++) {
                const ft_infer_cell *c = task ? &r->decode[s][b] : &r->prefill[s][b];
                ft__text_addf(out, "%s,", task ? "decode" : r->generates ? "prefill" : "forward");
                if (r->has_context) ft__text_addf(out, "%" PRId64, r->seqs[s]);
                ft__text_addf(out, ",%" PRId64, r->batches[b]);
                const double figures[] = {c->ms, c->low_ms, c->high_ms, c->tokens_per_s};
                for (int k = 0; k < 4; k++) {
                    if (c->ms > 0)
                        number(out, figures[k]);
                    else
                        ft__text_add(out, ","); /* so large that it was refused */
                }
                ft__text_addf(out, ",%s\n", c->fits ? "true" : "false");
            }
    return !out->failed;
}
