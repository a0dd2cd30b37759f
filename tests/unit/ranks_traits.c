/* Every trait of a stack does what it says: one row each, a stack with the trait turned and everything else left alone.
 * A trait without a row fails the test. */
#include "model/pytorch.h"
#include "ranks/offload.h"
#include "ranks_rig.h"

typedef enum figure { LAUNCHES, STEP, PEAK, GRADIENTS, COMM, EXPOSED, HOST, SENT, SAVED, REFUSED } figure;

typedef struct turn {
    const char *trait, *stack, *value; /* the trait is another there; it is turned to this */
    const char *model;
    ft_dtype dtype;
    int64_t tp, pp, dp;
    int zero;
    int64_t micros;
    figure of;
    int sign; /* the figure gets smaller (-1) or larger (1) */
} turn;

static const turn turns[] = {
    {"fused_norms", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"wide_norms", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, SAVED, 1},
    {"fused_rotary", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_activations", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_projections", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_softmax", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_latent_rotary", "megatron", "true", "deepseek-v2-lite", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_router", "megatron", "true", "deepseek-v2-lite", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"grouped_experts", "pytorch", "true", "mixtral-8x7b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"fused_scan", "pytorch", "true", "mamba2-1.3b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"own_gelu", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"passes_masks", "pytorch", "false", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"triton_flash1", "pytorch", "true", "llama-3.2-3b", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"engine_attention", "pytorch", "true", "llama-3.2-3b", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"ported_engine", "megatron", "true", "gpt2", FT_FP8, 1, 1, 1, 0, 1, STEP, 1},
    {"no_dropout", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"sums_in_products", "megatron", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 0, 4, LAUNCHES, 1},
    {"gradient_stand_ins", "megatron", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 1, 4, PEAK, -1},
    {"one_gradient_buffer", "megatron", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 0, 4, PEAK, 1},
    {"tensor_sums_beside", "megatron", "false", "llama-3-8b", FT_BF16, 8, 1, 1, 0, 4, EXPOSED, 1},
    {"exchanges_apart", "pytorch", "false", "llama-3-8b", FT_BF16, 8, 1, 1, 0, 4, COMM, -1},
    {"waits_for_sends", "megatron", "true", "gpt3-6.7b", FT_BF16, 1, 4, 1, 0, 8, STEP, 1},
    {"all_forward_first", "megatron", "true", "gpt3-6.7b", FT_BF16, 1, 4, 1, 0, 4, PEAK, 1},
    {"cuts_sends", "megatron", "true", "gpt3-6.7b", FT_BF16, 8, 4, 1, 0, 8, SENT, 1},
    {"softmax_heads", "megatron", "0", "gpt2-xl", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"sums_whole", "megatron", "\"always\"", "gpt3-6.7b", FT_BF16, 1, 1, 64, 1, 1, COMM, 1},
    {"sums_whole", "megatron_deepspeed", "\"never\"", "gpt3-6.7b", FT_BF16, 1, 2, 32, 1, 2, COMM, -1},
    {"widens_gradients", "megatron_deepspeed", "false", "gpt2", FT_BF16, 1, 2, 1, 0, 8, LAUNCHES, -1},
    {"reads_received", "megatron", "true", "gpt2", FT_BF16, 2, 2, 1, 0, 8, STEP, 1},
    {"launches_block", "megatron", "true", "gpt2", FT_BF16, 2, 2, 1, 0, 8, STEP, 1},
    {"raises_outputs", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"reads_loss", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 4, STEP, 1},
    {"reads_loss", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 8, 0, 4, STEP, 1},
    {"module_walks", "pytorch", "3", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, HOST, 1},
    {"module_walks", "pytorch", "3", "llama-3.2-1b", FT_BF16, 1, 1, 8, 0, 1, STEP, 1},
    {"launches_block", "megatron_deepspeed", "false", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"casts_apart", "pytorch", "false", "llama-3.2-1b", FT_FP8, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"keeps_low_operands", "megatron", "false", "llama-3.2-1b", FT_FP8, 1, 1, 1, 0, 1, PEAK, 1},
    {"lora_scale_in_product", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"lora_dtype", "pytorch", "\"model\"", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"lora_dtype", "pytorch", "\"fp32\"", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"lora_targets", "pytorch", "\"qkv\"", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"lora_targets", "megatron_recipe", "\"all\"", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"lora_documents", "megatron", "0", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"lora_documents_to", "megatron", "1000", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"lora_casts_model", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, PEAK, 1},
    {"lora_casts_model", "hf_trainer", "false", "falcon-7b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"narrow_words", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, -1},
    {"lora_dropout", "pytorch", "0.1", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, 1},
    {"prepares_kbit", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, 1},
    {"packed_inputs", "pytorch", "1", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, 1},
    {"flattens_gradients", "deepspeed", "false", "llama-3.2-1b", FT_BF16, 1, 1, 1, 2, 1, PEAK, -1},
    {"bucket_buffers", "deepspeed", "2", "llama-3.2-1b", FT_BF16, 1, 1, 8, 3, 1, PEAK, 1},
    {"bucket_buffers", "deepspeed", "0", "llama-3.2-1b", FT_BF16, 1, 1, 1, 3, 1, PEAK, -1},
    {"update_elements", "deepspeed", "0", "llama-3-8b", FT_BF16, 1, 1, 2, 3, 1, PEAK, 1},
    {"order_copies", "megatron_2023", "0", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"order_copies", "gpt_neox", "1", "pythia-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"repeats_keys", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"shifts_logits", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"softcaps_in_loss", "pytorch", "true", "gemma-2-2b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"own_head", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, 1},
    {"packs_head", "pytorch", "true", "llama-3-8b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"loss_chunk_gib", "unsloth", "0", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"loss_tokens", "pytorch", "128", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, -1},
    {"loss_rows", "pytorch", "128", "gpt2", FT_BF16, 1, 1, 1, 0, 1, PEAK, -1},
    {"loss_rows", "pytorch", "256", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"raises_unpacked", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"packed_dropout", "pytorch", "0", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"copies_packed", "pytorch", "false", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"lowers_packed", "pytorch", "true", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"packed_inputs", "litgpt", "1", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, PEAK, -1},
    {"separate_experts", "megatron", "false", "mixtral-8x7b", FT_BF16, 1, 1, 8, 1, 2, HOST, -1},
    {"gradient_hooks", "megatron", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 1, 2, HOST, -1},
    {"gradient_hooks", "megatron", "false", "mixtral-8x7b", FT_BF16, 1, 1, 8, 1, 2, HOST, -1},
    {"grouped_product_calls", "megatron", "1", "mixtral-8x7b", FT_BF16, 1, 1, 8, 1, 2, HOST, -1},
    {"grouped_product_calls", "megatron", "1", "mixtral-8x7b", FT_FP8, 1, 1, 8, 1, 2, HOST, -1},
    {"routing_kernels", "megatron", "10", "mixtral-8x7b", FT_BF16, 1, 1, 8, 1, 2, LAUNCHES, -1},
    {"routing_spared", "megatron", "0", "mixtral-8x7b", FT_BF16, 1, 1, 8, 1, 2, LAUNCHES, 1},
    {"low_product_calls", "megatron", "1", "llama-3.2-1b", FT_FP8, 1, 1, 1, 0, 1, HOST, -1},
    {"lean_hooks", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 8, 0, 1, HOST, -1},
    {"keeps_checkpoints", "fsdp2", "true", "llama-2-70b", FT_BF16, 1, 1, 8, 3, 1, PEAK, 1},
    {"keeps_checkpoints", "fsdp", "false", "llama-2-70b", FT_BF16, 1, 1, 8, 2, 1, PEAK, -1},
    {"reduces_last", "fsdp2", "true", "gpt3-6.7b", FT_BF16, 1, 1, 8, 3, 4, PEAK, 1},
    {"reduces_last", "hf_trainer", "false", "gpt3-6.7b", FT_BF16, 1, 1, 8, 3, 4, COMM, 1},
    {"module_hooks", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 8, 3, 1, HOST, 1},
    {"module_hooks", "deepspeed", "false", "gpt2", FT_BF16, 1, 1, 1, 3, 1, HOST, -1},
    {"hooks_between", "fsdp2", "1", "gpt2", FT_BF16, 1, 1, 8, 3, 1, HOST, 1},
    {"hooks_between", "sharded", "0", "gpt2", FT_BF16, 1, 1, 8, 3, 1, HOST, -1},
    {"gathers_hold", "deepspeed", "0", "llama-3.2-1b", FT_BF16, 1, 1, 8, 3, 1, STEP, -1},
    {"host_in_turn", "deepspeed", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 2, 1, STEP, -1},
    {"host_in_turn", "fsdp2", "true", "llama-3.2-1b", FT_BF16, 1, 1, 8, 2, 1, STEP, 1},
    {"one_thread", "deepspeed", "true", "llama-3.2-1b", FT_BF16, 1, 1, 8, 2, 1, STEP, 1},
    {"waits_for_weights", "fsdp2", "false", "llama-3.2-1b", FT_BF16, 1, 1, 8, 3, 1, STEP, -1},
    {"broadcasts_updates", "megatron", "true", "gpt3-6.7b", FT_BF16, 1, 1, 64, 1, 1, COMM, 1},
    {"copies_buckets", "ddp", "false", "gpt3-6.7b", FT_BF16, 1, 1, 8, 0, 1, STEP, -1},
    {"tuned_vectors", "gpt_fast", "false", "llama-3-8b", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"replays_tokens", "gpt_fast", "false", "llama-3-8b", FT_BF16, 1, 1, 1, 0, 1, HOST, 1},
    {"by_pytorch", "pytorch", "false", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, -1},
    {"nvfuser", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"reductions_end", "xla", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"reductions_end", "tensorflow", "false", "gpt2", FT_FP16, 1, 1, 1, 0, 1, STEP, -1},
    {"products_take_in", "tensorrt", "false", "resnet-50", FT_FP16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"products_take_in", "tensorrt", "false", "yolo11m", FT_FP16, 1, 1, 1, 0, 1, STEP, 1},
    {"issued_ahead", "tensorrt", "false", "resnet-50", FT_FP16, 1, 1, 1, 0, 1, STEP, 1},
    {"infers_only", "pytorch", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, REFUSED, 1},
    {"keeps_functions", "xla", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"wide_nchw", "xla", "true", "resnet-50", FT_TF32, 1, 1, 1, 0, 1, STEP, 1},
    {"native_host", "megatron", "true", "gpt2", FT_BF16, 1, 1, 1, 0, 1, HOST, -1},
    {"sequence_parallel", "pytorch", "false", "gpt2", FT_BF16, 2, 1, 1, 0, 1, REFUSED, 1},
    {"uneven_chunks", "pytorch", "true", "gpt2", FT_BF16, 1, 5, 1, 0, 10, REFUSED, -1},
    {"model_parallel", "pytorch", "false", "gpt2", FT_BF16, 2, 1, 1, 0, 1, REFUSED, 1},
    {"most_zero", "pytorch", "2", "gpt2", FT_BF16, 1, 1, 8, 3, 1, REFUSED, 1},
    {"sharding", "megatron", "\"parameters\"", "gpt3-6.7b", FT_BF16, 1, 1, 64, 3, 1, STEP, 1},
    {"overlap_gradients", "megatron", "\"always\"", "gpt3-6.7b", FT_BF16, 1, 1, 64, 0, 1, EXPOSED, -1},
    {"tensor_pieces", "megatron", "\"always\"", "gpt3-6.7b", FT_BF16, 8, 1, 1, 0, 4, EXPOSED, -1},
    {"selective", "pytorch", "\"core_attention\"", "llama-3.2-1b", FT_BF16, 1, 1, 1, 0, 1, SAVED, 1},
    {"loss_of", "pytorch", "\"megatron\"", "gpt2", FT_BF16, 1, 1, 1, 0, 1, PEAK, -1},
    {"loss_of", "llm_foundry", "\"pytorch\"", "gpt2", FT_BF16, 1, 1, 8, 3, 1, PEAK, 1},
    {"loss_of", "pytorch", "\"flash_attention\"", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"vocab_multiple", "pytorch", "128", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, -1},
    {"vocab_multiple", "llm_c", "0", "gpt2", FT_BF16, 1, 1, 1, 0, 1, STEP, 1},
    {"loss_figures", "pytorch", "2", "gpt2", FT_BF16, 1, 1, 1, 0, 1, LAUNCHES, 1},
    {"loss_figures", "llm_foundry", "0", "gpt2", FT_BF16, 1, 1, 8, 3, 1, STEP, -1},
    {"parallel_loss", "hf_trainer", "\"pytorch\"", "llama-3.2-1b", FT_BF16, 2, 1, 1, 0, 1, PEAK, -1},
    {"parallel_loss", "pytorch", "\"after_megatron\"", "llama-3.2-1b", FT_BF16, 2, 1, 1, 0, 1, PEAK, -1},
    {"parallel_loss", "torchtitan", "\"whole\"", "llama-3.2-1b", FT_BF16, 2, 1, 2, 3, 1, PEAK, 1},
    {"gradient_bytes_bf16", "megatron", "2", "llama-3.2-1b", FT_BF16, 1, 1, 8, 0, 4, GRADIENTS, -1},
    {"gradient_bytes_fp16", "megatron", "4", "llama-3.2-1b", FT_FP16, 1, 1, 8, 0, 4, GRADIENTS, 1},
    {"gradient_bytes_low", "megatron", "2", "llama-3.2-1b", FT_FP8, 1, 1, 8, 0, 4, GRADIENTS, -1},
    {"sharded_reduce_bytes", "fsdp2", "4", "gpt3-6.7b", FT_BF16, 1, 1, 64, 3, 1, COMM, 1},
    {"bucket_mib", "ddp", "1000", "gpt3-6.7b", FT_BF16, 1, 1, 64, 0, 1, EXPOSED, 1},
    {"bucket_elements", "megatron_recipe", "4e9", "gpt3-6.7b", FT_BF16, 1, 1, 64, 0, 1, EXPOSED, 1},
    {"bucket_elements_per_rank", "megatron_recipe", "1e8", "gpt3-6.7b", FT_BF16, 1, 1, 64, 0, 1, EXPOSED, 1},
};

static void read_into(const turn *t, bool turned, ft_stack *own)
{
    char text[256];
    snprintf(text, sizeof text, "{\"base\": \"%s\", \"traits\": {%s%s%s%s}}", t->stack, turned ? "\"" : "",
             turned ? t->trait : "", turned ? "\": " : "", turned ? t->value : "");
    json_t *object = json_loads(text, 0, NULL);
    const ft_stack *out = NULL;
    ft_error err;
    if (ft__stack_read(object, "stack", own, &out, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    json_decref(object);
}

/* Traits that show on another GPU than the usual one. */
static const char *gpu_of(const turn *t)
{
    return strstr(t->trait, "engine") ? "mi355x" : !strcmp(t->trait, "tuned_vectors") ? "a100_sxm_80gb" : "h100_sxm";
}

static double figure_of(const turn *t, bool turned)
{
    ft_stack own;
    read_into(t, turned, &own);
    rig r = {.arena = ft__arena_new(0),
             .memo = ft__memo_new(),
             .device = limit_device(gpu_of(t)),
             .arch = open_model(t->model),
             .work = train_work(1, 1024),
             .parallel = layout_of(t->tp, t->pp, 1, 1, t->dp)};
    r.device.memory_gib = 4096; /* what does not fit is no subject here */
    r.work.stack = &own;
    r.work.execution = own.execution;
    r.work.dtype = t->dtype;
    r.work.lora_rank = !strncmp(t->trait, "lora_", 5) || !strcmp(t->trait, "loss_tokens") ? 16 : 0;
    if (!strcmp(t->trait, "prepares_kbit") || strstr(t->trait, "pack")) {
        r.work.lora_rank = 16;
        r.work.weight_bits = 4;
        r.work.unpack_openly = !strcmp(t->trait, "raises_unpacked");
        r.work.autocast = ft__kbit_prepared(&r.work, &own);
    }
    if (!strcmp(t->trait, "loss_chunk_gib")) r.work.loss = FT_ENTROPY_FUSED_LINEAR;
    if (!strcmp(t->trait, "narrow_words")) r.work.autocast = true;
    r.work.accumulate = t->micros;
    if (!strcmp(t->trait, "host_in_turn") || !strcmp(t->trait, "one_thread"))
        r.work.offload = 1u << FT_OFFLOAD_OPTIMIZER;
    if (!strcmp(t->trait, "waits_for_weights")) r.work.offload = 1u << FT_OFFLOAD_PARAMETERS;
    const bool infers = !strcmp(t->trait, "products_take_in") || !strcmp(t->trait, "issued_ahead");
    if (infers) r.work.task = FT_FORWARD_PASS;
    if (t->of != HOST && strcmp(t->trait, "issued_ahead"))
        r.work.host_us_per_op = 0.001; /* so that what GPUs do shows */
    r.work.master_weights = own.master_weights;
    r.work.attention = strstr(t->trait, "softmax")          ? FT_EAGER
                       : !strcmp(t->trait, "triton_flash1") ? FT_FLASH1
                                                            : FT_FLASH;
    if (!strcmp(t->trait, "passes_masks")) {
        r.work.attention = FT_SDPA;
        r.work.execution = FT_RUN_COMPILE;
    }
    r.work.recompute = t->of == SAVED ? FT_RECOMPUTE_SELECTIVE : t->of == HOST ? FT_RECOMPUTE_FULL : FT_RECOMPUTE_NONE;
    if (!strcmp(t->trait, "keeps_checkpoints")) {
        r.work.lora_rank = 16;
        r.work.recompute = FT_RECOMPUTE_FULL;
    }
    if (!strcmp(t->trait, "raises_outputs")) r.work.autocast = true;
    if (!strcmp(t->trait, "by_pytorch"))
        r.work.pytorch = &ft__pytorches[0]; /* gradients are set to zero and added to */
    if (!strcmp(t->trait, "nvfuser")) r.work.execution = FT_RUN_TORCHSCRIPT;
    if (!strcmp(t->trait, "tuned_vectors") || !strcmp(t->trait, "replays_tokens")) r.work.task = FT_DECODE;
    r.parallel.zero = t->zero;
    r.parallel.in_pieces = r.parallel.expert_overlap = -1;
    r.parallel.sp = !strcmp(t->trait, "tensor_pieces") || !strcmp(t->trait, "sequence_parallel");
    if (!strcmp(t->trait, "routing_spared")) {
        r.parallel.ep = 8;
        r.parallel.dispatch_once = true;
    }
    if (t->pp > 1) {
        r.parallel.vpp = 2;
        r.parallel.schedule = FT_INTERLEAVED;
    }
    r.cluster = (ft_cluster){.tiers = 2, .gpus_per_node = 8, .nodes = 64, .gpus = 512};
    r.cluster.tier[0] =
        (ft_tier){.fabric = FT_NVLINK, .gbps = 450, .efficiency = 0.8, .gpus = 8, .oversubscription = 1};
    r.cluster.tier[1] =
        (ft_tier){.fabric = FT_INFINIBAND, .gbps = 50, .efficiency = 0.9, .gpus = 512, .oversubscription = 1};
    r.cluster.tier[0].switched = r.cluster.tier[1].switched = true;
    ft_error err;
    ft_divisible model = ft__ranks_model(&r.arch, &r.work);
    double refused = ft__stack_check(&r.work, t->zero, t->tp > 1, r.parallel.sp, &err) != FT_OK ||
                     ft__parallel_check(&r.parallel, &model, &err) != FT_OK;
    forecast_sound(&r);
    ft__offload_apply(&r.work, &r.device, &r.step);
    double launches = 0;
    for (int32_t i = 0; i < r.step.kernel_count; i++) launches += r.step.kernels[i].times;
    const double figures[] = {[LAUNCHES] = launches,
                              [STEP] = r.step.step_ms,
                              [PEAK] = r.step.memory.peak_bytes,
                              [GRADIENTS] = r.step.memory.gradients_bytes,
                              [COMM] = r.step.comm_ms,
                              [EXPOSED] = r.step.comm_exposed_ms,
                              [HOST] = r.step.host_ms,
                              [SENT] = r.ranked.gather_received_ms,
                              [SAVED] = r.step.memory.saved_bytes,
                              [REFUSED] = refused};
    end(&r);
    return figures[t->of];
}

static void each_trait_does_what_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        double before = figure_of(&turns[i], false), after = figure_of(&turns[i], true);
        if (!((after - before) * turns[i].sign > 0)) fail_msg("%s: %g to %g", turns[i].trait, before, after);
    }
}

static void no_trait_is_left_out(void **state)
{
    (void)state;
    size_t count;
    const ft_trait *traits = ft__stack_traits(&count);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t t = 0; t < sizeof turns / sizeof *turns; t++) found |= !strcmp(turns[t].trait, traits[i].name);
        if (!found) fail_msg("%s", traits[i].name);
    }
}

/* Which stack builds a model is decided before a layout is known: those that the layout chooses between build alike. */
static void what_a_layout_chooses_between_builds_alike(void **state)
{
    (void)state;
    static const ft_stack_role roles[] = {FT_STACK_FOR_ONE, FT_STACK_FOR_REPLICAS, FT_STACK_FOR_SHARDS};
    static const char *const of_layouts[] = {"most_zero", "sharding", "overlap_gradients", "prepares_kbit",
                                             "sums_whole"};
    size_t count;
    const ft_trait *traits = ft__stack_traits(&count);
    const char *one = (const char *)ft__default_stacks[FT_STACK_FOR_ONE];
    for (size_t r = 1; r < sizeof roles / sizeof *roles; r++)
        for (size_t i = 0; i < count; i++) {
            bool free = false;
            for (size_t k = 0; k < sizeof of_layouts / sizeof *of_layouts; k++)
                free |= !strcmp(traits[i].name, of_layouts[k]);
            static const size_t sizes[] = {[FT_TRAIT_FLAG] = sizeof(bool),
                                           [FT_TRAIT_WORD] = sizeof(ft_sharding),
                                           [FT_TRAIT_NUMBER] = sizeof(double)};
            const char *other = (const char *)ft__default_stacks[roles[r]];
            if (!free && memcmp(one + traits[i].offset, other + traits[i].offset, sizes[traits[i].type]))
                fail_msg("%s", traits[i].name);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trait_does_what_it_says),
        cmocka_unit_test(no_trait_is_left_out),
        cmocka_unit_test(what_a_layout_chooses_between_builds_alike),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
