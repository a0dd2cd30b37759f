/* rules.c: which operators are known, which are refused, and how attributes are read. */
#include <string.h>

#include "import/onnx/run.h"

static const ft_onnx_rule *in_list(const ft_onnx_rule *list, const char *op)
{
    for (; list->op; list++)
        if (!strcmp(list->op, op)) return list;
    return NULL;
}

const ft_onnx_rule *ft__onnx_rule(const char *domain, const char *op)
{
    static const ft_onnx_rule *const standard[] = {
        ft__onnx_pointwise_rules, ft__onnx_product_rules, ft__onnx_move_rules,  ft__onnx_copy_rules,
        ft__onnx_slice_rules,     ft__onnx_pick_rules,    ft__onnx_row_rules,   ft__onnx_norm_rules,
        ft__onnx_conv_rules,      ft__onnx_vision_rules,  ft__onnx_fused_rules, ft__onnx_quantised_rules,
        ft__onnx_recurrent_rules};
    static const ft_onnx_rule *const microsoft[] = {ft__onnx_microsoft_rules, ft__onnx_norm_microsoft_rules,
                                                    ft__onnx_quantised_microsoft_rules};
    const ft_onnx_rule *found = NULL;
    bool runtime = !strcmp(domain, "com.microsoft");
    for (size_t i = 0; runtime && i < sizeof microsoft / sizeof *microsoft && !found; i++)
        found = in_list(microsoft[i], op);
    for (size_t i = 0; !runtime && !*domain && i < sizeof standard / sizeof *standard && !found; i++)
        found = in_list(standard[i], op);
    return found;
}

const char *ft__onnx_refusal(const char *domain, const char *op)
{
    static const char *const flow[] = {"If", "Loop", "Scan", "SequenceMap"};
    if (*domain) return NULL;
    for (size_t i = 0; i < sizeof flow / sizeof *flow; i++)
        if (!strcmp(op, flow[i]))
            return "control flow: what runs depends on the data; export the model without it, or with the branch "
                   "chosen";
    if (!strncmp(op, "Sequence", 8) || !strcmp(op, "SplitToSequence") || !strcmp(op, "ConcatFromSequence"))
        return "sequences are not tensors";
    if (!strncmp(op, "Optional", 8)) return "optional values are not tensors";
    if (!strncmp(op, "String", 6) || !strcmp(op, "TfIdfVectorizer") || !strcmp(op, "RegexFullMatch") ||
        !strcmp(op, "ImageDecoder"))
        return "text and files are not handled on a GPU";
    return NULL;
}

/* -- attributes ------------------------------------------------------------------------------------ */

const ft_onnx_attribute *ft__onnx_attribute(const ft_onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->attribute_count; i++)
        if (!strcmp(n->attributes[i].name, name)) return &n->attributes[i];
    return NULL;
}

int64_t ft__onnx_int(const ft_onnx_node *n, const char *name, int64_t otherwise)
{
    const ft_onnx_attribute *a = ft__onnx_attribute(n, name);
    return a ? a->i : otherwise;
}

const char *ft__onnx_string(const ft_onnx_node *n, const char *name, const char *otherwise)
{
    const ft_onnx_attribute *a = ft__onnx_attribute(n, name);
    return a && a->s ? a->s : otherwise;
}

int ft__onnx_ints(const ft_onnx_node *n, const char *name, int most, int64_t *out)
{
    const ft_onnx_attribute *a = ft__onnx_attribute(n, name);
    size_t count = a ? a->int_count : 0;
    if (count > (size_t)most) return most + 1; /* more than anybody asks for: the caller's count will not agree */
    if (count) memcpy(out, a->ints, count * sizeof *out);
    return (int)count;
}
