/* taken_for.c: what is said beside a stack can only have been some software, and it is taken for that. The answer says
 * so, and the request may name another. */
#include "request/taken_for.h"

#include <stdio.h>

#include "model/packing.h"
#include "request/keys.h"

/* FlashAttention 1 with fp32 masters is how llm-foundry's runs were published: the package's Triton kernel. */
void ft__take_for_first_flash(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    bool first = ft__given(said, FT_KEY_ID_ATTENTION) && w->attention == FT_FLASH1 && w->master_weights;
    if (w->stack || w->task != FT_TRAIN || w->execution == FT_RUN_FUSED || !first) return;
    w->stack = ft__default_stacks[FT_STACK_FOR_FIRST_FLASH];
    snprintf(out->remark, sizeof out->remark,
             "\"flash1\" with fp32 masters: assumed to be the stack \"%s\"; name the stack if it is another",
             w->stack->name);
}

/* A compiler's kernels of a loss have no parts that could be told apart (loss_linear.c, loss_fused.c). */
static void remark_compiled_loss(ft_model_request *out)
{
    if (out->work.task != FT_TRAIN || !ft__compiles(&out->work) || *out->remark) return;
    snprintf(out->remark, sizeof out->remark,
             out->work.loss == FT_ENTROPY_FUSED
                 ? "compiled, \"loss\" \"fused\" takes the time and memory of the compiler's own kernels of a loss"
                 : "compiled, \"loss\" \"fused_linear\" stores no logits but is timed as a loss that does");
}

/* A loss that makes no logits is Liger's where operators run one by one, and whoever turns it on (Trainer, TRL,
 * Axolotl, LLaMA-Factory) turns its other kernels on. Shards are another stack's. */
void ft__take_for_liger(ft_model_request *out)
{
    ft_workload *w = &out->work;
    const bool shards = out->parallel.zero > 1 && out->parallel.dp * out->parallel.cp > 1;
    if (w->loss == FT_ENTROPY_FUSED || w->loss == FT_ENTROPY_FUSED_LINEAR) remark_compiled_loss(out);
    if (w->loss != FT_ENTROPY_FUSED_LINEAR) return;
    if (w->stack || shards || !ft__stack_takes_fused_linear(w, out->arch)) return;
    w->stack = ft__default_stacks[FT_STACK_FOR_FUSED_LINEAR];
    if (*out->remark) return;
    snprintf(out->remark, sizeof out->remark,
             "\"loss\" \"fused_linear\" is Liger's: assumed to be the stack \"%s\", whose norms, rotary embeddings and "
             "gates are one kernel each; name the stack if it is another",
             w->stack->name);
}

/* Transformer Engine has no attention that is written out: fused kernels around one, without sequence parallelism, are
 * software of before both. The answer says so, and the request may name another. */
void ft__take_for_old(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    bool split_norms = out->parallel.sp && out->parallel.tp > 1;
    bool written_out = ft__given(said, FT_KEY_ID_ATTENTION) && w->attention == FT_EAGER;
    if (w->stack || w->task != FT_TRAIN || w->execution != FT_RUN_FUSED || !written_out || split_norms) return;
    /* Then, states that are sharded and parameters that are not were DeepSpeed's alone. */
    bool sharded = out->parallel.zero == 1;
    w->stack = ft__default_stacks[sharded ? FT_STACK_FOR_WRITTEN_OUT_SHARDED : FT_STACK_FOR_WRITTEN_OUT];
    snprintf(out->remark, sizeof out->remark,
             "fused kernels around eager attention: assumed to be the stack \"%s\"; name the stack if it is another",
             w->stack->name);
}

/* Fused kernels in fewer than 16 bits are Transformer Engine's. On a GPU whose runs were published with its first port
 * that is what is meant; adapters came with later software. The answer says so. */
void ft__take_for_ported(ft_model_request *out)
{
    ft_workload *w = &out->work;
    w->ported = !w->stack && ft__stack_of_gpu(ft__default_stacks[FT_STACK_FOR_PORTED], out->device->name);
    if (!w->ported || ft__stack(w) != ft__default_stacks[FT_STACK_FOR_PORTED]) return;
    snprintf(out->remark, sizeof out->remark,
             "fused kernels below 16 bits on this GPU: assumed to be the stack \"%s\"; \"megatron\" is the software of "
             "today",
             ft__stack(w)->name);
}

/* NVIDIA's performance recipes begin with its GPUs that have fp8; what was published of those before has the layers of
 * then. The answer says so. */
void ft__take_for_earlier(ft_model_request *out)
{
    ft_workload *w = &out->work;
    w->before_fp8 = !(out->device->peak_tflops[FT_FP8] > 0);
    if (w->stack || ft__stack(w) != ft__default_stacks[FT_STACK_FOR_FUSED_BEFORE_FP8]) return;
    snprintf(out->remark, sizeof out->remark,
             "fused kernels on a GPU without fp8: assumed to be the stack \"%s\"; \"megatron\" is the software of "
             "today",
             ft__stack(w)->name);
}

/* Transformers passes compiled layers a mask, which costs little where cuDNN reads it. Elsewhere on NVIDIA it means the
 * memory-efficient kernels, and who publishes compiled training there has layers that say they are causal
 * (docs/stacks.md). A version of PyTorch picks by itself. */
void ft__take_for_causal(ft_model_request *out)
{
    ft_workload *w = &out->work;
    const ft_device *device = out->device;
    bool trains = w->task == FT_TRAIN && w->execution == FT_RUN_COMPILE && w->attention == FT_SDPA;
    bool efficient = device->vendor == FT_VENDOR_NVIDIA && device->matrix_issue == FT_ISSUE_MMA;
    w->causal_by_name = !w->stack && !w->pytorch && trains && efficient;
}

/* No flash kernel adds a bias of relative positions, and transformers has none for a model that its own code runs
 * written out (`_supports_sdpa` false). Where nobody says otherwise such a model runs as the library has it; recipes'
 * fused kernels and whoever names a stack have their own. */
void ft__take_for_written_out(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    const bool whole = w->task == FT_TRAIN || w->task == FT_FORWARD_PASS;
    const bool own = w->stack || w->execution == FT_RUN_FUSED || out->parallel.cp > 1;
    if (ft__given(said, FT_KEY_ID_ATTENTION) || own || !whole) return;
    if (out->arch->relative_buckets > 0) w->attention = FT_SDPA;
    if (out->arch->no_sdpa) w->attention = FT_EAGER;
}

/* Sequences of adapters by NVIDIA's recipes are packed from examples, unless the request says what they are. Ranks that
 * share a sequence are forecast with whole ones. */
void ft__take_for_packed(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    const bool told = ft__given(said, FT_KEY_ID_PACKING) || ft__given(said, FT_KEY_ID_SAMPLE_LENGTHS);
    const bool examples = out->arch->design == FT_DECODER_ONLY && out->arch->kv_lora < 1 &&
                          w->trainer == FT_TRAINER_SFT;
    w->one_document = told || !examples || out->parallel.cp > 1;
    if (w->one_document || ft__documents(w) < 1 || *out->remark) return;
    out->packs_examples = true;
    snprintf(out->remark, sizeof out->remark,
             "sequences are packed from examples of %lld tokens, as in the recipes of the stack \"%s\"; \"packing\" "
             "sets your own, %lld for none",
             (long long)ft__documents(w), ft__stack(w)->name, (long long)w->seq);
}

/* A library by name that nobody built for such a GPU is answered all the same: it may come. */
void ft__remark_library(const ft_said *said, ft_model_request *out)
{
    const ft_attention_kind asked = out->work.attention;
    const bool flash3 = asked == FT_FLASH3 && out->device->matrix_issue != FT_ISSUE_WGMMA;
    const bool cudnn = asked == FT_CUDNN && out->device->vendor != FT_VENDOR_NVIDIA;
    if (!ft__given(said, FT_KEY_ID_ATTENTION) || *out->remark || !(flash3 || cudnn)) return;
    snprintf(out->remark, sizeof out->remark,
             flash3 ? "\"flash3\" is written for wgmma instructions, which %s lacks: no such kernel runs there"
                    : "\"cudnn\" is NVIDIA's: no such kernel runs on %s",
             out->device->name);
}

/* Modules that predict further tokens train where they are asked for: libraries leave out what checkpoints have. */
void ft__remark_modules(const ft_said *said, ft_model_request *out)
{
    const long long modules = (long long)out->arch->mtp_layers;
    const bool trains = out->work.task == FT_TRAIN && out->work.lora_rank < 1;
    if (modules < 1 || !trains || ft__given(said, FT_KEY_ID_MTP)) return;
    snprintf(out->modules, sizeof out->modules,
             "%lld module%s of the model that predict%s further tokens %s left out; \"mtp\" %lld trains %s", modules,
             modules > 1 ? "s" : "", modules > 1 ? "" : "s", modules > 1 ? "are" : "is", modules,
             modules > 1 ? "them" : "it");
}
