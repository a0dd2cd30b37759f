/* effects_study.c: which keys of a step have no effect in a study of many steps, and which of a kernel's in one.
 *
 * A study takes every key of a step, and asks for steps with most of them. What the others ask for is a part of one
 * step's answer (its kernels, its pictures), or what the study chooses itself (batches of a grid). They are taken out
 * of what is asked, and said; a plan leaves them in the steps that it proposes. tests/python/test_effects.py gives
 * every key to every study and holds this against what the answers do. */
#include <math.h>
#include <string.h>

#include "kernel/families.h"
#include "kernel/family.h"
#include "request/idle.h"
#include "request/tasks.h"

static const struct {
    ft_ask task;
    const char *keys; /* between blanks */
    const char *why;
} rows[] = {
    {FT_ASK_INFER, "detail course pictures", "the answer is a grid of steps, none of them in detail"},
    {FT_ASK_INFER, "global_batch", "the grid has batches of its own"},
    {FT_ASK_LARGEST, "lengths batching longer pad_multiple", "the largest model is sought for sequences of one length"},
    {FT_ASK_SCALE, "lengths batching longer pad_multiple", "curves are of sequences of one length"},
    {FT_ASK_PLAN, "lengths batching longer pad_multiple", "layouts are sought for sequences of one length"},
    {FT_ASK_CHOOSE, "lengths batching longer pad_multiple", "GPUs are chosen for sequences of one length"},
    {FT_ASK_LARGEST, "detail advice techniques course pictures", "the answer is a model, without its step in detail"},
    {FT_ASK_SCALE, "detail advice techniques course pictures tokens",
     "the answer is curves over GPUs, without a step in detail"},
    {FT_ASK_PLAN, "detail advice techniques course pictures tokens", "the answer is layouts, without a step in detail"},
    {FT_ASK_PLAN_SERVE, "advice course", "the answer is ways to serve, none of them in detail"},
    {FT_ASK_COMPARE, "detail advice techniques course pictures",
     "times and kernels are compared, nothing else in detail"},
    {FT_ASK_SERVE, "detail techniques pictures loader", "the answer is for a load, without a step in detail"},
    {FT_ASK_SERVE, "batch global_batch seq", "the engine batches requests, whose lengths are \"isl\" and \"osl\""},
    {FT_ASK_SERVE, "attention execution compile_scope host host_us_per_op cache", "the engine's own"},
};

void ft__idle_say(const ft_idle_key *at, size_t count, ft_text *out)
{
    for (size_t i = 0; i < count; i++)
        ft__text_addf(out, "%s\"%s\" has no effect: %s",
                      out->length > 0 && out->at[out->length - 1] != '\n' ? "\n" : "", ft__keys[at[i].key].key,
                      at[i].why);
}

bool ft__repeats_default(ft_key_id id, const json_t *value)
{
    const ft_key_row *k = &ft__keys[id];
    if (isnan(k->standard)) return false;
    if (json_is_string(value)) return k->words && !strcmp(json_string_value(value), k->words[(int)k->standard]);
    if (json_is_boolean(value)) return json_is_true(value) == (k->standard != 0);
    return json_is_number(value) && json_number_value(value) == k->standard;
}

void ft__idle_note(ft_idle_list *list, const json_t *home, ft_key_id id, const char *why)
{
    const json_t *value = ft__key_get(home, id);
    if (value && !ft__repeats_default(id, value)) ft__idle_put(list, id, why);
}

void ft__idle_put(ft_idle_list *list, ft_key_id id, const char *why)
{
    if (list->count < FT_IDLE_MOST) list->at[list->count++] = (ft_idle_key){id, why};
}

void ft__idle_keep(ft_idle_list *list, const ft_idle_list *other)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t k = 0;
        while (k < other->count && other->at[k].key != list->at[i].key) k++;
        if (k < other->count) list->at[kept++] = other->at[k];
    }
    list->count = kept;
}

static bool is_listed(size_t row, ft_ask task, int key)
{
    return rows[row].task == task && ft__keys[key].section == FT_SECTION_MODEL &&
           ft__among(rows[row].keys, ft__keys[key].key);
}

void ft__study_note(ft_ask task, const json_t *base, ft_idle_list *list)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < FT_KEY_COUNT; k++)
            if (is_listed(i, task, k)) ft__idle_note(list, base, (ft_key_id)k, rows[i].why);
}

void ft__study_idle(ft_ask task, json_t *base, ft_idle_list *list)
{
    ft__study_note(task, base, list);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < FT_KEY_COUNT; k++)
            if (is_listed(i, task, k)) ft__key_drop(base, (ft_key_id)k);
}

void ft__kernel_idle(const json_t *object, const ft_op *op, ft_idle_list *list)
{
    int variant;
    bool product = op->kind == FT_OP_GEMM;
    if (product && ft__family_of(op, &variant) == &ft__gemm_tensor_family)
        ft__idle_note(list, object, FT_KEY_ID_BIAS, "tensor-core kernels add it as they write the result");
    if (product && ft_dtype_bytes(op->dtype) >= 2)
        ft__idle_note(list, object, FT_KEY_ID_QUANTIZED, "operands of this \"dtype\" are not quantised");
    if (product && op->weights == FT_STORED_AS_COMPUTED)
        ft__idle_note(list, object, FT_KEY_ID_WEIGHT_KERNEL, "no low-bit weights are dequantised");
    if (op->kind == FT_OP_ATTENTION && op->u.attention.q_len == 1)
        ft__idle_note(list, object, FT_KEY_ID_CAUSAL, "one query sees all keys");
    if (op->kind == FT_OP_MLA && op->u.mla.q_len == 1) {
        ft__idle_note(list, object, FT_KEY_ID_CAUSAL, "one query sees all keys");
        ft__idle_note(list, object, FT_KEY_ID_NOPE_DIM, "one query is answered in the latent space");
        ft__idle_note(list, object, FT_KEY_ID_V_DIM, "one query is answered in the latent space");
    }
    if (op->kind == FT_OP_ROW && (op->pass == FT_PASS_FWD || strcmp(op->name, "embedding") != 0))
        ft__idle_note(list, object, FT_KEY_ID_VOCAB, "only the gradient of an embedding goes over the whole table");
}
