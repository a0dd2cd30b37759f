/* stack.c: which stack it is, and what it cannot do. */
#include "model/stack.h"

#include <string.h>

#include "base/software.h"
#include "base/text.h"

enum { MOST_STACKS = 64 };

const ft_stack *ft__stack_of(const ft_workload *w, int zero, int64_t replicas)
{
    if (w->stack) return w->stack;
    bool ported = w->ported && w->task == FT_TRAIN && w->lora_rank < 1 && ft_dtype_bytes(w->dtype) < 2;
    bool tokens = w->task == FT_DECODE && w->execution == FT_RUN_COMPILE;
    bool earlier = w->task == FT_TRAIN && w->before_fp8;
    ft_stack_role fused = earlier ? FT_STACK_FOR_FUSED_BEFORE_FP8 : FT_STACK_FOR_FUSED;
    ft_stack_role role = tokens                                                             ? FT_STACK_FOR_TOKENS
                         : w->execution == FT_RUN_FUSED && ported                           ? FT_STACK_FOR_PORTED
                         : w->execution == FT_RUN_FUSED                                     ? fused
                         : w->task == FT_TRAIN && w->master_weights                         ? FT_STACK_FOR_MASTERS
                         : zero >= 3 && w->task == FT_TRAIN && w->execution == FT_RUN_EAGER ? FT_STACK_FOR_EAGER_SHARDS
                         : zero >= 2                                                        ? FT_STACK_FOR_SHARDS
                         : replicas > 1                                                     ? FT_STACK_FOR_REPLICAS
                                                                                            : FT_STACK_FOR_ONE;
    return ft__default_stacks[role];
}

bool ft__stack_takes_fused_linear(const ft_workload *w, const ft_arch *arch)
{
    const bool plain = w->task == FT_TRAIN && w->execution == FT_RUN_EAGER && arch->design == FT_DECODER_ONLY;
    const bool packed = w->weight_bits > 0 && w->weight_bits < 16;
    if (!plain || packed || w->master_weights) return false;
    return !w->stack || w->stack == ft__default_stacks[FT_STACK_FOR_FUSED_LINEAR]->base;
}

/* Whether a word is in a list with blanks between. */
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' '))
        if (strcspn(at, " ") == length && !strncmp(at, word, length)) return true;
    return false;
}

bool ft__stack_of_gpu(const ft_stack *s, const char *gpu) { return lists(s->default_gpus, gpu); }
bool ft__stack_has_kernels_for(const ft_stack *s, const ft_arch *arch)
{
    return arch->model_type && lists(s->models, arch->model_type); /* a graph's file need not say one */
}

ft_adapters ft__adapters_of(const ft_workload *w)
{
    static const ft_adapter_form forms[] = {[FT_LORA_DTYPE_FP32] = FT_ADAPTER_FP32,
                                            [FT_LORA_DTYPE_MODEL] = FT_ADAPTER_MODEL,
                                            [FT_LORA_DTYPE_AUTOCAST] = FT_ADAPTER_AUTOCAST};
    static const unsigned targets[] = {[FT_LORA_TARGETS_ALL] = FT_TARGET_ALL,
                                       [FT_LORA_TARGETS_QKV] = FT_TARGET_Q | FT_TARGET_K | FT_TARGET_V,
                                       [FT_LORA_TARGETS_QV] = FT_TARGET_Q | FT_TARGET_V};
    const ft_stack *s = ft__stack(w);
    ft_adapters a = w->lora;
    const bool packed = w->weight_bits > 0 && w->weight_bits < 16, lowered = s->lowers_packed && packed;
    if (a.form == FT_ADAPTER_OF_STACK) a.form = lowered ? FT_ADAPTER_MODEL : forms[s->lora_dtype];
    if (!a.targets) a.targets = targets[s->lora_targets];
    if (!a.dropout_said)
        a.dropout = packed && s->packed_dropout > s->lora_dropout ? s->packed_dropout : s->lora_dropout;
    a.scaled_in_product = s->lora_scale_in_product;
    a.narrow_inputs = packed && !(w->unpack_openly && s->raises_unpacked);
    a.copies_base = packed && w->weight_bits < 8 && !w->unpack_openly && s->copies_packed;
    return a;
}

bool ft__kbit_prepared(const ft_workload *w, const ft_stack *s)
{
    bool packed = w->weight_bits > 0 && w->weight_bits < 8 && !w->unpack_openly, wide = ft_dtype_bytes(w->dtype) != 2;
    if (!s->prepares_kbit || w->task != FT_TRAIN || w->lora_rank < 1 || !packed || wide || w->autocast) return false;
    return ft__adapters_of(w).form == FT_ADAPTER_AUTOCAST;
}

ft_status ft__stack_find(const char *name, const ft_stack **out, ft_error *err)
{
    const char *names[MOST_STACKS];
    size_t count = ft__stack_count < MOST_STACKS ? ft__stack_count : MOST_STACKS;
    char listed[512] = "";
    for (size_t i = 0; i < count; i++) {
        names[i] = ft__stacks[i].name;
        if (!strcmp(names[i], name)) {
            *out = &ft__stacks[i];
            return FT_OK;
        }
        size_t length = strlen(listed);
        if (length + strlen(names[i]) + 3 < sizeof listed) {
            strcpy(listed + length, i ? ", " : "");
            strcat(listed, names[i]);
        }
    }
    const char *nearest = ft__nearest_software(name, names, count);
    int shown = (int)ft__utf8_cut(name, 60);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, "stack", 0, 0, "unknown stack \"%.*s\"; did you mean \"%s\"?", shown, name,
                           nearest);
    return ft__fail_at(err, FT_E_NAME, "stack", 0, 0, "unknown stack \"%.*s\"; expected %s, a file or an object", shown,
                       name, listed);
}

ft_status ft__stack_check(const ft_workload *w, int zero, bool model_parallel, bool sequence_parallel, ft_error *err)
{
    const ft_stack *s = w->stack;
    if (!s) return FT_OK;
    if (w->task == FT_TRAIN && s->infers_only)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "stack", 0, 0,
                           "the stack \"%s\" builds engines for inference: it trains nothing; \"infer\" forecasts them",
                           s->name);
    if (!(s->executions >> w->execution & 1)) {
        char has[96] = "";
        for (int i = FT_RUN_EAGER; i < FT_RUN_COUNT; i++)
            if (s->executions >> i & 1) {
                if (*has) strcat(has, ", ");
                strcat(strcat(strcat(has, "\""), ft__execution_words[i]), "\"");
            }
        return ft__fail_at(err, FT_E_RANGE, "execution", 0, 0, "the stack \"%s\" does not run \"%s\"; it runs %s",
                           s->name, ft__execution_words[w->execution], has);
    }
    if (zero > s->most_zero)
        return ft__fail_at(err, FT_E_RANGE, "parallel.zero", 0, 0, "the stack \"%s\" shards up to \"zero\": %g, not %d",
                           s->name, s->most_zero, zero);
    if (model_parallel && !s->model_parallel)
        return ft__fail_at(err, FT_E_RANGE, "parallel", 0, 0,
                           "the stack \"%s\" has data ranks alone: \"tp\", \"pp\", \"cp\" and \"ep\" must be 1",
                           s->name);
    if (sequence_parallel && !s->sequence_parallel)
        return ft__fail_at(err, FT_E_RANGE, "parallel.sp", 0, 0,
                           "the stack \"%s\" has no sequence parallelism: \"sp\" must be false", s->name);
    return FT_OK;
}
