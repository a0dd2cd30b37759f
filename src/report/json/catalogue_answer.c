/* catalogue_answer.c: GPUs and models as JSON. */
#include "report/json/catalogue_answer.h"

#include "device/balance.h"
#include "device/traits.h"
#include "report/json/answer.h"

/* -- GPUs -------------------------------------------------------------------------------------- */

static void add_number(ft_text *out, const char *key, double value)
{
    if (!(value > 0)) return;
    ft__json_member_number(out, key, value, 9);
}

static void add_string(ft_text *out, const char *key, const char *value)
{
    if (!*value) return;
    ft__json_member_text(out, key, value);
}

static void add_yes(ft_text *out, const char *key, bool yes) { ft__json_member_flag(out, key, yes); }

static void add_by_dtype(ft_text *out, const char *key, const ft_device *d, const double *table, bool balance)
{
    ft__json_member_open(out, key);
    for (int t = 0; t < FT_DTYPE_COUNT; t++) {
        double value = balance ? ft__machine_balance(d, (ft_dtype)t) : table[t];
        if (!(value > 0)) continue;
        ft__json_member_number(out, ft_dtype_name((ft_dtype)t), value, balance ? 6 : 9);
    }
    ft__json_close(out);
}

static void add_traits(ft_text *out, const ft_device *d)
{
    add_string(out, "matrix_issue", ft__matrix_issue_name(d->matrix_issue));
    add_string(out, "async_copy", ft__async_copy_name(d->async_copy));
    add_number(out, "issue_lanes_per_sm", d->issue_lanes_per_sm);
    add_yes(out, "dual_issue", d->dual_issue);
    add_number(out, "dies", d->dies);
    add_number(out, "l2_partitions", d->l2_partitions);
    add_yes(out, "inline_ecc", d->inline_ecc);
    add_number(out, "matrix_pj_per_flop", d->matrix_pj_per_flop);
    add_number(out, "exp_per_clk_per_sm", d->exp_per_clk_per_sm);
}

/* The keys of a spec object, so that what comes out goes in again; the derived ones have names of their own. */
void ft__answer_gpu(ft_text *out, const ft_device *d)
{
    ft__json_open(out);
    ft__json_member_text(out, "name", d->name);
    add_string(out, "title", d->title);
    add_string(out, "vendor", ft__vendor_name(d->vendor));
    add_string(out, "architecture", d->architecture);
    add_string(out, "generation", d->generation);
    add_string(out, "compute_capability", d->compute_capability);
    add_number(out, "year", d->year);
    add_number(out, "process_nm", d->process_nm);
    add_number(out, "sms", d->sms);
    add_number(out, "fp32_lanes_per_sm", d->lanes_per_sm);
    add_number(out, "matrix_fma_per_clk_per_sm", d->matrix_fma_per_clk_sm);
    if (d->uncapped_fma_per_clk_sm > 0) add_number(out, "uncapped_fma_per_clk_per_sm", d->uncapped_fma_per_clk_sm);
    add_number(out, "clock_mhz", d->boost_mhz);
    if (d->running_mhz > 0) add_number(out, "running_mhz", d->running_mhz);
    add_number(out, "base_mhz", d->base_mhz);
    add_number(out, "matrix_mhz", d->matrix_mhz);
    add_number(out, "sustained_clock_mhz", d->sustained_mhz);
    add_number(out, "tdp_w", d->tdp_w);
    if (d->power_cap_w > 0) add_number(out, "power_cap_w", d->power_cap_w);
    add_number(out, "memory_gib", d->memory_gib);
    add_number(out, "memory_gbps", d->memory_gbps);
    add_string(out, "memory_type", d->memory_is_hbm ? "hbm" : "gddr");
    add_number(out, "l2_mib", d->l2_mib);
    add_number(out, "l2_bytes_per_clk", d->l2_bytes_per_clk);
    add_number(out, "smem_kib_per_sm", d->smem_kib_per_sm);
    add_number(out, "regs_per_sm", d->regs_kib_per_sm * 256);
    add_number(out, "max_warps_per_sm", d->max_warps_per_sm);
    add_traits(out, d);
    add_by_dtype(out, "peak_tflops", d, d->peak_tflops, false);
    add_by_dtype(out, "vector_tflops", d, d->vector_tflops, false);
    add_by_dtype(out, "balance_flop_per_byte", d, NULL, true);
    if (d->link_kind[0]) {
        ft__json_member_open(out, "link");
        ft__json_member_text(out, "kind", d->link_kind);
        add_number(out, "gbps_per_direction", d->link_gbps_per_direction);
        add_number(out, "gpus", d->link_gpus);
        add_yes(out, "switched", d->link_switched);
        add_yes(out, "reduces", d->link_reduces);
        add_yes(out, "apart", d->link_apart);
        ft__json_close(out);
    }
    add_number(out, "server_nic_gbit", d->server_nic_gbit);
    add_number(out, "pcie_gbps", d->pcie_gbps);
    add_number(out, "price_usd_per_hour", d->price_usd_per_hour);
    ft__json_close(out);
}

void ft__answer_gpus(ft_text *out, const json_t *id, const ft_gpu_list *list)
{
    ft_text warnings = {0};
    ft__answer_begin(out, id);
    ft__json_member_list(out, "gpus");
    for (size_t i = 0; i < list->count; i++) {
        ft__answer_gpu(out, &list->sheets[i].device);
        if (*list->sheets[i].warnings) ft__text_addf(&warnings, "%s\n", list->sheets[i].warnings);
    }
    ft__json_close_list(out);
    if (warnings.length) ft__answer_lines(out, "warnings", warnings.at);
    ft__json_close(out);
    ft__text_drop(&warnings, out);
}

/* -- models ------------------------------------------------------------------------------------ */

static void add_whole(ft_text *out, const char *key, double value)
{
    if (value <= 0) return;
    ft__json_member_number(out, key, value, 15);
}

void ft__answer_model(ft_text *out, const ft_model_sheet *s)
{
    const ft_arch *a = &s->arch;
    ft__json_open(out);
    ft__json_member_text(out, "name", s->name);
    ft__answer_word(out, "hub", s->entry ? s->entry->hub : NULL);
    ft__answer_word(out, "model_type", a->model_type);
    add_whole(out, "parameters", s->parameters);
    add_whole(out, "active_parameters", s->active_parameters);
    add_whole(out, "published_parameters", s->entry ? s->entry->published : 0);
    add_whole(out, "layers", (double)a->layers);
    add_whole(out, "decoder_layers", (double)a->decoder_layers);
    add_whole(out, "hidden", (double)a->hidden);
    add_whole(out, "heads", (double)a->heads);
    add_whole(out, "kv_heads", (double)a->kv_heads);
    add_whole(out, "head_dim", (double)a->head_dim);
    add_whole(out, "ffn", (double)a->ffn);
    add_whole(out, "vocab", (double)a->vocab);
    add_whole(out, "max_position", (double)a->max_position);
    add_whole(out, "experts", (double)a->experts);
    add_whole(out, "topk", (double)a->topk);
    add_whole(out, "kv_bytes_per_token", s->kv_bytes_per_token);
    ft__answer_word(out, "source", s->entry ? s->entry->source : NULL);
    ft__json_close(out);
}

void ft__answer_models(ft_text *out, const json_t *id, const ft_model_list *list)
{
    ft__answer_begin(out, id);
    ft__json_member_list(out, list->types ? "types" : "models");
    for (size_t i = 0; i < list->type_count; i++) {
        ft__json_add_text(out, list->types[i]);
    }
    for (size_t i = 0; i < list->count; i++) {
        ft__answer_model(out, &list->sheets[i]);
    }
    ft__json_close_list(out);
    ft__json_close(out);
}
