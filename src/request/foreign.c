/* foreign.c: what Megatron-LM, DeepSpeed, torchtitan, vLLM, SGLang, llama.cpp and transformers call our keys. */
#include "request/foreign.h"

#include <string.h>

#include "base/text.h"
#include "device/gpu.h"
#include "device/spec.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

const ft_foreign ft__foreign[] = {
    {"tensor_model_parallel_size", FT_KEY_ID_TP, NULL},
    {"tensor_parallel_size", FT_KEY_ID_TP, NULL},
    {"tensor_parallel", FT_KEY_ID_TP, NULL},
    {"pipeline_model_parallel_size", FT_KEY_ID_PP, NULL},
    {"pipeline_parallel_size", FT_KEY_ID_PP, NULL},
    {"pipeline_parallel", FT_KEY_ID_PP, NULL},
    {"virtual_pipeline_model_parallel_size", FT_KEY_ID_VPP, NULL},
    {"num_layers_per_virtual_pipeline_stage", FT_KEY_ID_VPP, NULL},
    {"data_parallel_size", FT_KEY_ID_DP, NULL},
    {"data_parallel", FT_KEY_ID_DP, NULL},
    {"data_parallel_shard_degree", FT_KEY_ID_SHARD, NULL},
    {"context_parallel_size", FT_KEY_ID_CP, NULL},
    {"context_parallel", FT_KEY_ID_CP, NULL},
    {"expert_model_parallel_size", FT_KEY_ID_EP, NULL},
    {"expert_parallel_size", FT_KEY_ID_EP, NULL},
    {"expert_parallel", FT_KEY_ID_EP, NULL},
    {"enable_expert_parallel", FT_KEY_ID_EP, NULL},
    {"sequence_parallel", FT_KEY_ID_SP, NULL},
    {"zero_stage", FT_KEY_ID_ZERO, NULL},
    {"fsdp", FT_KEY_ID_ZERO, "3"},
    {"use_distributed_optimizer", FT_KEY_ID_ZERO, "1"},
    {"overlap_grad_reduce", FT_KEY_ID_OVERLAP, NULL},
    {"overlap_param_gather", FT_KEY_ID_GATHER_OVERLAP, NULL},
    {"overlap_p2p_communication", FT_KEY_ID_OVERLAP_P2P, NULL},
    {"tp_comm_overlap", FT_KEY_ID_TP_OVERLAP, NULL},
    {"reshard_after_forward", FT_KEY_ID_RESHARD, NULL},
    {"zero1", FT_KEY_ID_ZERO, "1"},
    {"zero2", FT_KEY_ID_ZERO, "2"},
    {"zero3", FT_KEY_ID_ZERO, "3"},
    {"expert_tensor_parallel_size", FT_KEY_ID_ETP, NULL},
    {"moe_token_dispatcher_type", FT_KEY_ID_EXPERT_DISPATCH, NULL},
    {"overlap_moe_expert_parallel_comm", FT_KEY_ID_EXPERT_OVERLAP, NULL},
    {"ddp_bucket_size", FT_KEY_ID_BUCKET, NULL},
    {"moe_expert_capacity_factor", FT_KEY_ID_EXPERT_CAPACITY, NULL},
    {"sequence_length", FT_KEY_ID_SEQ, NULL},
    {"seq_length", FT_KEY_ID_SEQ, NULL},
    {"seq_len", FT_KEY_ID_SEQ, NULL},
    {"max_seq_length", FT_KEY_ID_SEQ, NULL},
    {"max_model_len", FT_KEY_ID_SEQ, NULL},
    {"max_length", FT_KEY_ID_SEQ, NULL},
    {"block_size", FT_KEY_ID_SEQ, NULL},
    {"per_device_train_batch_size", FT_KEY_ID_MICRO_BATCH, NULL},
    {"batch_size", FT_KEY_ID_MICRO_BATCH, NULL},
    {"bs", FT_KEY_ID_MICRO_BATCH, NULL},
    {"mbs", FT_KEY_ID_MICRO_BATCH, NULL},
    {"gbs", FT_KEY_ID_GLOBAL_BATCH, NULL},
    {"train_batch_size", FT_KEY_ID_GLOBAL_BATCH, NULL},
    {"micro_batch_size", FT_KEY_ID_MICRO_BATCH, NULL},
    {"train_micro_batch_size_per_gpu", FT_KEY_ID_MICRO_BATCH, NULL},
    {"gradient_accumulation_steps", FT_KEY_ID_GLOBAL_BATCH, NULL},
    {"accumulate_grad_batches", FT_KEY_ID_GLOBAL_BATCH, NULL},
    {"grad_accum", FT_KEY_ID_GLOBAL_BATCH, NULL},
    {"context", FT_KEY_ID_SEQ, NULL},
    {"context_length", FT_KEY_ID_SEQ, NULL},
    {"context_len", FT_KEY_ID_SEQ, NULL},
    {"ctx", FT_KEY_ID_SEQ, NULL},
    {"model_name", FT_KEY_ID_MODEL, NULL},
    {"model_id", FT_KEY_ID_MODEL, NULL},
    {"model_name_or_path", FT_KEY_ID_MODEL, NULL},
    {"gpu_type", FT_KEY_ID_GPU, NULL},
    {"gpu_name", FT_KEY_ID_GPU, NULL},
    {"device", FT_KEY_ID_GPU, NULL},
    {"vllm_tensor_parallel_size", FT_KEY_ID_ROLLOUT_TP, NULL},
    {"vllm_gpu_memory_utilization", FT_KEY_ID_ROLLOUT_MEMORY, NULL},
    {"max_completion_length", FT_KEY_ID_ROLLOUT_LONGEST, NULL},
    {"max_response_length", FT_KEY_ID_ROLLOUT_LONGEST, NULL},
    {"num_generations", FT_KEY_ID_ROLLOUT_SAMPLES, NULL},
    {"num_generations_per_prompt", FT_KEY_ID_ROLLOUT_SAMPLES, NULL},
    {"n_samples_per_prompt", FT_KEY_ID_ROLLOUT_SAMPLES, NULL},
    {"num_steps_per_rollout", FT_KEY_ID_ROLLOUT_UPDATES, NULL},
    {"max_trajectory_age_steps", FT_KEY_ID_ROLLOUT_AGE, NULL},
    {"num_inference_steps", FT_KEY_ID_DENOISING_STEPS, NULL},
    {"guidance_scale", FT_KEY_ID_GUIDANCE, NULL},
    {"num_frames", FT_KEY_ID_FRAMES, NULL},
    {"num_gpus", FT_KEY_ID_GPUS, NULL},
    {"gpu_count", FT_KEY_ID_GPUS, NULL},
    {"world_size", FT_KEY_ID_GPUS, NULL},
    {"tp_size", FT_KEY_ID_TP, NULL},
    {"pp_size", FT_KEY_ID_PP, NULL},
    {"dp_size", FT_KEY_ID_DP, NULL},
    {"ep_size", FT_KEY_ID_EP, NULL},
    {"cp_size", FT_KEY_ID_CP, NULL},
    {"attn_implementation", FT_KEY_ID_ATTENTION, NULL},
    {"flash_attn", FT_KEY_ID_ATTENTION, "flash"},
    {"optim", FT_KEY_ID_OPTIMIZER, NULL},
    {"torch_dtype", FT_KEY_ID_MODEL_DTYPE, NULL},
    {"mixed_precision", FT_KEY_ID_MODEL_DTYPE, NULL},
    {"amp", FT_KEY_ID_MODEL_DTYPE, "amp_bf16"},
    {"use_amp", FT_KEY_ID_MODEL_DTYPE, "amp_bf16"},
    {"qlora", FT_KEY_ID_WEIGHTS_DTYPE, "nf4 --lora-rank 16"},
    {"load_in_4bit", FT_KEY_ID_WEIGHTS_DTYPE, "nf4"},
    {"load_in_8bit", FT_KEY_ID_WEIGHTS_DTYPE, "int8"},
    {"lora_r", FT_KEY_ID_LORA_RANK, NULL},
    {"lora_target", FT_KEY_ID_ADAPTER_TARGETS, NULL},
    {"target_modules", FT_KEY_ID_ADAPTER_TARGETS, NULL},
    {"use_dora", FT_KEY_ID_ADAPTER_DORA, NULL},
    {"cutoff_len", FT_KEY_ID_SEQ, NULL},
    {"sample_packing", FT_KEY_ID_PACKING, NULL},
    {"input_len", FT_KEY_ID_ISL, NULL},
    {"input_length", FT_KEY_ID_ISL, NULL},
    {"random_input_len", FT_KEY_ID_ISL, NULL},
    {"output_len", FT_KEY_ID_OSL, NULL},
    {"output_length", FT_KEY_ID_OSL, NULL},
    {"random_output_len", FT_KEY_ID_OSL, NULL},
    {"max_tokens", FT_KEY_ID_OSL, NULL},
    {"max_new_tokens", FT_KEY_ID_OSL, NULL},
    {"request_rate", FT_KEY_ID_RATE, NULL},
    {"qps", FT_KEY_ID_RATE, NULL},
    {"num_prompts", FT_KEY_ID_REQUESTS, NULL},
    {"max_concurrency", FT_KEY_ID_CONCURRENCY, NULL},
    {"clients", FT_KEY_ID_CONCURRENCY, NULL},
    {"num_clients", FT_KEY_ID_CONCURRENCY, NULL},
    {"users", FT_KEY_ID_CONCURRENCY, NULL},
    {"num_users", FT_KEY_ID_CONCURRENCY, NULL},
    {"mem_fraction_static", FT_KEY_ID_GPU_MEMORY_UTILIZATION, NULL},
    {"free_gpu_memory_fraction", FT_KEY_ID_GPU_MEMORY_UTILIZATION, NULL},
    {"kv_cache_free_gpu_mem_fraction", FT_KEY_ID_GPU_MEMORY_UTILIZATION, NULL},
    {"kv_cache_free_gpu_memory_fraction", FT_KEY_ID_GPU_MEMORY_UTILIZATION, NULL},
    {"max_running_requests", FT_KEY_ID_MAX_NUM_SEQS, NULL},
    {"max_batch_size", FT_KEY_ID_MAX_NUM_SEQS, NULL},
    {"max_num_tokens", FT_KEY_ID_MAX_NUM_BATCHED_TOKENS, NULL},
    {"chunked_prefill_size", FT_KEY_ID_MAX_NUM_BATCHED_TOKENS, NULL},
    {"enable_chunked_prefill", FT_KEY_ID_CHUNKED_PREFILL, NULL},
    {"enable_prefix_caching", FT_KEY_ID_PREFIX_HIT, NULL},
    {"num_speculative_tokens", FT_KEY_ID_DRAFT_TOKENS, NULL},
    {"speculative_num_draft_tokens", FT_KEY_ID_DRAFT_TOKENS, NULL},
    {"speculative_draft_model_path", FT_KEY_ID_DRAFT, NULL},
    {"ngl", FT_KEY_ID_GPU_LAYERS, NULL},
    {"n_gpu_layers", FT_KEY_ID_GPU_LAYERS, NULL},
    {"n_cpu_moe", FT_KEY_ID_CPU_EXPERTS, NULL},
    {"ncmoe", FT_KEY_ID_CPU_EXPERTS, NULL},
    {"cache_type_k", FT_KEY_ID_MODEL_KV_DTYPE, NULL},
    {"ctk", FT_KEY_ID_MODEL_KV_DTYPE, NULL},
    {"kv_cache_dtype", FT_KEY_ID_MODEL_KV_DTYPE, NULL},
    {"recompute_granularity", FT_KEY_ID_RECOMPUTE, NULL},
    {"recompute_method", FT_KEY_ID_RECOMPUTE, NULL},
    {"recompute_num_layers", FT_KEY_ID_RECOMPUTE_LAYERS, NULL},
    {"no_gradient_checkpointing", FT_KEY_ID_RECOMPUTE, "none"},
    {"recompute_activations", FT_KEY_ID_RECOMPUTE, "selective"},
    {"gradient_checkpointing", FT_KEY_ID_RECOMPUTE, "full"},
    {"activation_checkpointing", FT_KEY_ID_RECOMPUTE, "full"},
    {"torch_compile", FT_KEY_ID_EXECUTION, "compile"},
    {"compile", FT_KEY_ID_EXECUTION, "compile"},
    {"deepspeed", FT_KEY_ID_STACK, "deepspeed"},
    {"ddp", FT_KEY_ID_STACK, "ddp"},
    {"cpu_offload", FT_KEY_ID_OFFLOAD, "optimizer"},
    {"offload_optimizer", FT_KEY_ID_OFFLOAD, "optimizer"},
    {"offload_param", FT_KEY_ID_OFFLOAD, "parameters"},
    {"channels_last", FT_KEY_ID_IMAGE_LAYOUT, "nhwc"},
    {"imgsz", FT_KEY_ID_IMAGE_SIZE, NULL},
    {"img_size", FT_KEY_ID_IMAGE_SIZE, NULL},
    {"resolution", FT_KEY_ID_IMAGE_SIZE, NULL},
    {"num_workers", FT_KEY_ID_WORKERS, NULL},
    {"train_iters", FT_KEY_ID_TRAIN_TOKENS, NULL},
    {"max_steps", FT_KEY_ID_TRAIN_TOKENS, NULL},
    {"num_epochs", FT_KEY_ID_TRAIN_TOKENS, NULL},
    {"num_train_epochs", FT_KEY_ID_TRAIN_TOKENS, NULL},
    {"epochs", FT_KEY_ID_TRAIN_TOKENS, NULL},
    {"mtbf", FT_KEY_ID_FAILURES, NULL},
    {"bf16", FT_KEY_ID_MODEL_DTYPE, "bf16"},
    {"fp16", FT_KEY_ID_MODEL_DTYPE, "fp16"},
    {"fp8", FT_KEY_ID_MODEL_DTYPE, "fp8"},
    {"fp8_format", FT_KEY_ID_MODEL_DTYPE, "fp8"},
    {"fp8_recipe", FT_KEY_ID_MODEL_DTYPE, "fp8"},
    {"precision", FT_KEY_ID_MODEL_DTYPE, NULL},
    {"quantization", FT_KEY_ID_WEIGHTS_DTYPE, NULL},
    {"num_nodes", FT_KEY_ID_NODES, NULL},
    {"nnodes", FT_KEY_ID_NODES, NULL},
    {"nproc_per_node", FT_KEY_ID_GPUS_PER_NODE, NULL},
};
const size_t ft__foreign_count = COUNT(ft__foreign);

/* Too far from ours to be a slip of them, and written in too many ways to list. */
static ft_key_id by_its_beginning(const char *said)
{
    static const struct {
        const char *begins;
        ft_key_id key;
    } families[] = {
        {"tensor_", FT_KEY_ID_TP},         {"pipeline_parallel_schedule", FT_KEY_ID_SCHEDULE},
        {"pipeline_", FT_KEY_ID_PP},       {"virtual_pipeline", FT_KEY_ID_VPP},
        {"context_", FT_KEY_ID_CP},        {"sequence_parallel", FT_KEY_ID_SP},
        {"expert_tensor_", FT_KEY_ID_ETP}, {"expert_model_parallel", FT_KEY_ID_EP},
        {"expert_parallel", FT_KEY_ID_EP}, {"data_parallel", FT_KEY_ID_DP},
    };
    for (size_t i = 0; i < COUNT(families); i++)
        if (!strncmp(said, families[i].begins, strlen(families[i].begins))) return families[i].key;
    return FT_KEY_COUNT;
}

const char *ft__foreign_meaning(const ft_foreign *f)
{
    static const struct {
        const char *theirs, *meaning;
    } meanings[] = {
        {"gradient_accumulation_steps", "sequences of a step over all GPUs, micro-batch x data ranks x accumulation"},
        {"accumulate_grad_batches", "sequences of a step over all GPUs, micro-batch x data ranks x accumulation"},
        {"grad_accum", "sequences of a step over all GPUs, micro-batch x data ranks x accumulation"},
        {"train_iters", "tokens of the whole run, steps x global batch x sequence"},
        {"max_steps", "tokens of the whole run, steps x global batch x sequence"},
        {"num_epochs", "tokens of the whole run, all epochs"},
        {"num_train_epochs", "tokens of the whole run, all epochs"},
        {"epochs", "tokens of the whole run, all epochs"},
        {"enable_expert_parallel", "the ranks that experts are spread over"},
        {"enable_prefix_caching", "the share of every prompt that is found in the cache"},
        {"num_layers_per_virtual_pipeline_stage", "the chunks of a stage"},
    };
    for (size_t i = 0; i < COUNT(meanings); i++)
        if (!strcmp(f->theirs, meanings[i].theirs)) return meanings[i].meaning;
    return NULL;
}

const char *ft__foreign_unasked(const char *said)
{
    static const char *const idle[] = {
        "trust_remote_code",
        "served_model_name",
        "disable_log_requests",
        "load_format",
        "learning_rate",
        "weight_decay",
        "warmup_steps",
        "warmup_ratio",
        "max_grad_norm",
        "logging_steps",
        "save_steps",
        "eval_steps",
        "output_dir",
        "dataset",
        "dataset_name",
        "lr",
        "lr_scheduler_type",
        "api_key",
        "report_to",
        "wandb_project",
    };
    static const struct {
        const char *theirs, *why;
    } unasked[] = {
        {"cudnn_benchmark", "leave it out: it is not forecast, and on an H200 most layers take as long with it"},
        {"currency", "prices are in US dollars"},
        {"max_model_len", "requests are as long as their prompts and answers are said to be"},
        {"context_length", "requests are as long as their prompts and answers are said to be"},
        {"enforce_eager", "engines are forecast with the CUDA graphs that they have by default"},
    };
    for (size_t i = 0; i < COUNT(idle); i++)
        if (ft__within(said, strlen(said), idle[i], 0)) return "leave it out: no forecast depends on it";
    for (size_t i = 0; i < COUNT(unasked); i++)
        if (ft__within(said, strlen(said), unasked[i].theirs, 0)) return unasked[i].why;
    return NULL;
}

ft_key_id ft__foreign_key(const char *said)
{
    for (size_t i = 0; i < ft__foreign_count; i++)
        if (!strcmp(said, ft__foreign[i].theirs)) return ft__foreign[i].key;
    for (size_t i = 0; i < ft__foreign_count; i++) /* batchsize, Batch-Size */
        if (ft__within(said, strlen(said), ft__foreign[i].theirs, 0)) return ft__foreign[i].key;
    return by_its_beginning(said);
}

bool ft__foreign_gpus(const char *said, int *count, char which[80])
{
    return !ft__is_path(said) && ft__catalogue_counted(said, count, which);
}
