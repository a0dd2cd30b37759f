/* advice_words.c: moves and findings as sentences. */
#include "report/text/advice_words.h"

#include <inttypes.h>
#include <math.h>

#include "base/json_write.h"
#include "report/text/style.h"
#include "request/patch.h"

static const char *const verdict_parts[FT_PARTS] = {
    [FT_PART_CONTRACTION] = "contraction",   [FT_PART_NORMALISATION] = "normalising",
    [FT_PART_ELEMENTWISE] = "elementwise",   [FT_PART_WAITS] = "waits for the host",
    [FT_PART_EXCHANGE] = "exposed exchange", [FT_PART_BUBBLE] = "bubble",
    [FT_PART_INPUT] = "waits for input"};
const char ft__closed_remark[] =
    "Exchanges of this step were simulated; savings compare steps whose exchanges are closed forms.";
const char ft__inexact_remark[] = "* not the same numbers: validate the result";
const char *const ft__loading_words[4] = {"in time", "disk", "workers", "copy"};
const char *const ft__lint_words[FT_LINT_KINDS] = {
    [FT_LINT_ALIGNMENT] = "alignment", [FT_LINT_CHANNELS] = "channels", [FT_LINT_LAYOUT] = "layout",
    [FT_LINT_TILE] = "tile",           [FT_LINT_WAVE] = "wave",         [FT_LINT_FEW_TILES] = "few_tiles",
    [FT_LINT_GROUPS] = "groups"};

/* -- what to change ---------------------------------------------------------------------------- */

static void say_degrees(ft_text *out, const ft_parallel *a, const ft_parallel *b)
{
    const struct {
        const char *name;
        int64_t from, to;
    } degrees[] = {{"tp", a->tp, b->tp}, {"pp", a->pp, b->pp}, {"cp", a->cp, b->cp}, {"dp", a->dp, b->dp}};
    const char *comma = "";
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        if (degrees[i].from == degrees[i].to) continue;
        ft__text_addf(out, "%s%s %" PRId64 " to %" PRId64, comma, degrees[i].name, degrees[i].from, degrees[i].to);
        comma = ", ";
    }
}

static void say_execution(ft_text *out, ft_execution e)
{
    static const char *const words[] = {[FT_RUN_EAGER] = "run eager",
                                        [FT_RUN_FUSED] = "hand-fused kernels",
                                        [FT_RUN_COMPILE] = "compile (torch.compile)",
                                        [FT_RUN_CUDA_GRAPH] = "compile with CUDA graphs",
                                        [FT_RUN_IDEAL] = "no host",
                                        [FT_RUN_TORCHSCRIPT] = "TorchScript"};
    ft__text_add(out, words[e]);
}

static void say_parallel(ft_text *out, const ft_advice *a, const ft_change *now)
{
    const ft_parallel *p = &a->after.parallel;
    switch (a->move.kind) {
    case FT_MOVE_DEGREES: say_degrees(out, &now->parallel, p); break;
    case FT_MOVE_ZERO: ft__text_addf(out, "ZeRO stage %d instead of %d", p->zero, now->parallel.zero); break;
    case FT_MOVE_COPIES:
        ft__text_addf(out, p->zero ? "%" PRId64 " GPUs, ZeRO stage %d" : "%" PRId64 " GPUs, data parallel", p->dp,
                      p->zero);
        break;
    case FT_MOVE_SEQUENCE: ft__text_add(out, "sequence parallel with tensor parallel"); break;
    case FT_MOVE_PIECES: ft__text_add(out, "tensor exchanges during GEMMs (tp_overlap)"); break;
    case FT_MOVE_GATHER: ft__text_add(out, "gather parameters a layer ahead (FSDP)"); break;
    case FT_MOVE_DISPATCH: ft__text_add(out, "send tokens once to a rank and a node (DeepEP)"); break;
    case FT_MOVE_EXPERT_OVERLAP:
        ft__text_add(out, "overlap expert exchanges with another micro-batch (overlap_moe_expert_parallel_comm)");
        break;
    case FT_MOVE_WHOLE_EXPERTS: ft__text_addf(out, "whole experts over %" PRId64 " ranks (etp 1)", p->ep); break;
    case FT_MOVE_SCHEDULE: ft__text_addf(out, "schedule %s", ft__schedule_name(p->schedule)); break;
    case FT_MOVE_CHUNKS: ft__text_addf(out, "interleave %" PRId64 " virtual stages per GPU", p->vpp); break;
    case FT_MOVE_OVERLAP: ft__text_add(out, "exchange gradients during the backward pass"); break;
    case FT_MOVE_BUCKET: ft__text_addf(out, "gradient buckets of %" PRId64 " MiB", a->move.to); break;
    case FT_MOVE_WIRE: ft__text_addf(out, "exchange gradients in %" PRId64 " bits", 8 * a->move.to); break;
    default: break;
    }
}

void ft__advice_change(ft_text *out, const ft_advice *a, const ft_change *now)
{
    const ft_workload *w = &a->after.work, *from = &now->work;
    const int64_t to = a->move.to;
    switch (a->move.kind) {
    case FT_MOVE_VOCAB: ft__text_addf(out, "pad vocab %" PRId64 " to %" PRId64, now->arch->vocab, to); break;
    case FT_MOVE_FFN: ft__text_addf(out, "pad MLP width %" PRId64 " to %" PRId64, now->arch->ffn, to); break;
    case FT_MOVE_HIDDEN: ft__text_addf(out, "pad hidden width %" PRId64 " to %" PRId64, now->arch->hidden, to); break;
    case FT_MOVE_BATCH: ft__text_addf(out, "batch %" PRId64 " instead of %" PRId64, to, from->batch); break;
    case FT_MOVE_MICRO:
        ft__text_addf(out, "micro-batch %" PRId64 " accumulated %" PRId64 " times", w->batch, w->accumulate);
        break;
    case FT_MOVE_EXECUTION: say_execution(out, w->execution); break;
    case FT_MOVE_LOSS: ft__text_add(out, "Liger's kernels (use_liger_kernel)"); break;
    case FT_MOVE_ATTENTION: ft__text_addf(out, "%s attention", ft__attention_words[w->attention]); break;
    case FT_MOVE_OPTIMIZER:
        if (w->optimizer == FT_ADAMW)
            ft__text_add(out, "fused AdamW");
        else
            ft__text_addf(out, "optimizer %s", ft__optimizer_words[w->optimizer]);
        break;
    case FT_MOVE_DTYPE: ft__text_addf(out, "%s instead of %s", ft__change_dtype(w), ft__change_dtype(from)); break;
    case FT_MOVE_RECOMPUTE:
        if (w->recompute == FT_RECOMPUTE_NONE)
            ft__text_add(out, "no recomputation");
        else
            ft__text_addf(out, "%s recomputation", ft__recompute_words[w->recompute]);
        break;
    case FT_MOVE_IMAGES: ft__text_add(out, "images channels-last (NHWC)"); break;
    case FT_MOVE_KV: ft__text_addf(out, "KV cache in %s", ft_dtype_name(w->kv_dtype)); break;
    case FT_MOVE_WEIGHTS: ft__text_addf(out, "weights of %" PRId64 " bits", to); break;
    case FT_MOVE_CACHE: ft__text_addf(out, "%s KV cache", ft__cache_words[w->cache]); break;
    case FT_MOVE_ADAPTERS: ft__text_addf(out, "train LoRA adapters of rank %" PRId64, to); break;
    case FT_MOVE_WORKERS:
        ft__text_addf(out, "%" PRId64 " loader workers instead of %" PRId64, to, now->loader.workers);
        break;
    case FT_MOVE_PINNED: ft__text_add(out, "pinned memory, copies during the step"); break;
    case FT_MOVE_PACKED: ft__text_add(out, "packed shards (WebDataset, HDF5) instead of files"); break;
    case FT_MOVE_GPU:
        ft__text_add_plain(out, a->after.device->title[0] ? a->after.device->title : a->after.device->name);
        break;
    default: say_parallel(out, a, now); break;
    }
}

bool ft__advice_inexact(const ft_advice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!list[i].exact) return true;
    return false;
}

/* -- why --------------------------------------------------------------------------------------- */

static const char *reason(const ft_advice *a, const ft_change *now)
{
    switch (a->move.kind) {
    case FT_MOVE_BATCH:
        return a->after.work.batch < now->work.batch ? "the last wave of tiles is full"
               : now->work.task == FT_TRAIN          ? "per sample: launches, weights and the update are shared by more"
                                                     : "per sample: launches and weights are shared by more";
    case FT_MOVE_EXECUTION:
        return a->after.work.execution == FT_RUN_FUSED ? "fewer passes over memory" : "fused kernels, fewer launches";
    case FT_MOVE_RECOMPUTE:
        if (a->after.work.recompute == FT_RECOMPUTE_NONE) return "the forward pass runs once";
        return ft__recomputes_layers(&a->after.work) ? "attention and every other product run once"
                                                     : "only attention's scores are recomputed";
    default: return ft__move_why(a->move.kind);
    }
}

void ft__advice_why(ft_text *out, const ft_advice *a, const ft_change *now, const double before[FT_PARTS])
{
    ft__text_add(out, reason(a, now));
    bool told[FT_PARTS] = {false};
    for (int n = 0; n < 2; n++) {
        int most = 0;
        for (int i = 1; i < FT_PARTS; i++)
            if (!told[i] && (told[most] || fabs(before[i] - a->part_ms[i]) > fabs(before[most] - a->part_ms[most])))
                most = i;
        double change = fabs(before[most] - a->part_ms[most]);
        if (told[most] || change < 0.02 * fabs(a->saves_ms) || !(change > 0)) break;
        told[most] = true;
        ft__text_addf(out, "%s%s ", n ? ", " : ": ", verdict_parts[most]);
        ft_time_unit unit = ft__time_unit(fmax(before[most], a->part_ms[most]));
        ft__add_figure(out, before[most] / unit.ms, 3);
        ft__text_add(out, " to ");
        ft__add_figure(out, a->part_ms[most] / unit.ms, 3);
        ft__text_addf(out, " %s", unit.name);
    }
}

/* -- lint -------------------------------------------------------------------------------------- */

void ft__lint_finding(ft_text *out, const ft_lint *l)
{
    double bytes = (double)l->from * ft_dtype_bytes(l->op.dtype);
    switch (l->kind) {
    case FT_LINT_ALIGNMENT:
        ft__text_addf(out, "%c = %" PRId64 ": rows of %.0f bytes are not aligned to the 16 that matrix units load",
                      l->dimension, l->from, bytes);
        break;
    case FT_LINT_CHANNELS:
        ft__text_addf(out, "%" PRId64 " %s channels: %.0f bytes per pixel, not a multiple of 16", l->from,
                      l->dimension == 'c' ? "input" : "output", bytes);
        break;
    case FT_LINT_LAYOUT: ft__text_add(out, "and other convolutions in NCHW: transposed around the matrix units"); break;
    case FT_LINT_TILE:
        ft__text_addf(out, "%c = %" PRId64 ": the last tile is mostly padding, %.0f %% of the work is waste",
                      l->dimension, l->from, 100 * l->waste);
        break;
    case FT_LINT_WAVE: ft__text_addf(out, "%.0f %% of its waves are empty", 100 * l->waste); break;
    case FT_LINT_FEW_TILES: ft__text_addf(out, "too few tiles: %.0f %% of the SMs have none", 100 * l->waste); break;
    case FT_LINT_GROUPS:
        ft__text_addf(out, "groups of %" PRId64 " channels: too few to fill the matrix units", l->from);
        break;
    case FT_LINT_KINDS: break;
    }
}

void ft__lint_fix(ft_text *out, const ft_lint *l)
{
    switch (l->kind) {
    case FT_LINT_ALIGNMENT: ft__text_addf(out, "pad %c to %" PRId64, l->dimension, l->to); break;
    case FT_LINT_CHANNELS: ft__text_addf(out, "pad to %" PRId64 " channels", l->to); break;
    case FT_LINT_LAYOUT: ft__text_add(out, "channels last (NHWC)"); break;
    case FT_LINT_TILE: ft__text_addf(out, "%c = %" PRId64 " costs as much", l->dimension, l->to); break;
    case FT_LINT_WAVE: ft__text_addf(out, "%" PRId64 " rows cost as much as %" PRId64, l->to, l->from); break;
    case FT_LINT_FEW_TILES: ft__text_addf(out, "more rows: %" PRId64 " instead of %" PRId64, l->to, l->from); break;
    case FT_LINT_GROUPS: ft__text_add(out, "fewer, wider groups"); break;
    case FT_LINT_KINDS: break;
    }
}
