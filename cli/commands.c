/* commands.c: the table of commands, with the text of their help and their examples.
 *
 * What --help, the manual page and completion say of a command stands here once. Examples are pairs: what is typed, and
 * what it shows. Options have a table of their own (options.c). */
#include <string.h>

#include "commands.h"

static const char *const train_examples[] = {
    "foretell train llama-3-8b --gpu h200_sxm -b 2 --seq 4096",
    "one training step: time, memory, where both go",
    "foretell train gpt2 --gpu a100_sxm_80gb -b 8 --execution compile --detail kernels",
    "kernel by kernel, as the compiler fuses them",
    "foretell train llama-3-70b --gpu h100_sxm --gpus 64 --tp 8 --pp 4 --sp --zero 1 --global-batch-size 64",
    "on eight nodes: exchanges, bubbles, the fullest rank",
    "foretell train gpt3-175b --gpu a100_sxm_80gb --gpus 480 --tp 8 --pp 12 --sp --global-batch-size 1920 --tokens "
    "300e9",
    "days to train",
    NULL,
};
static const char *const infer_examples[] = {
    "foretell infer llama-3-8b --gpu h100_sxm",
    "TTFT and TPOT over batch and context, and how much the cache holds",
    "foretell infer qwen3-8b --gpu l40s --weights-dtype fp8 --isl 1024 --osl 256",
    "offline throughput with quantised weights",
    NULL,
};
static const char *const serve_examples[] = {
    "foretell serve llama-3.1-70b --gpu h200_sxm --tp 4 --dtype fp8 --isl 1024 --osl 1024 --concurrency 64",
    "what 64 clients see of vLLM: TTFT, TPOT and their percentiles",
    "foretell serve llama-3.1-8b --gpu l40s --isl 512 --osl 128 --slo ttft=500ms,tpot=50ms --find rate",
    "the highest rate at which nine requests in ten meet both objectives",
    "foretell serve qwen3-32b --gpu h100_sxm --tp 2 --engine sglang --trace requests.csv",
    "a log of requests, replayed",
    NULL,
};
static const char *const largest_examples[] = {
    "foretell largest --gpu h100_sxm --dtype bf16 --master-weights",
    "the largest Llama-like model that trains there",
    "foretell largest --gpu h100_sxm --gpus 4 --master-weights --family gpt",
    "the largest GPT on four, states sharded",
    NULL,
};
static const char *const scale_examples[] = {
    "foretell scale llama-3-70b --gpu h100_sxm",
    "tokens per GPU for FSDP, how far tensor parallel goes, two curves",
    "foretell scale deepseek-v3 --gpu gb200 --gpus 1152 --ep 64",
    "experts over racks",
    NULL,
};
static const char *const plan_examples[] = {
    "foretell plan llama-3-70b --gpu h100_sxm --gpus 64 --global-batch-size 256 --seq 8192",
    "the fastest layouts that fit, proven, and why others lose",
    "foretell plan llama-3-8b --gpu a100_sxm_80gb --gpus 16 --global-batch-size 128 --framework torchtitan",
    "the same for torchtitan",
    NULL,
};
static const char *const choose_examples[] = {
    "foretell choose llama-3-8b --tokens 1e12 --gpus 8:512",
    "days and dollars on A100, H100, H200 and B200, failures counted",
    "foretell choose llama-3-70b --tokens 2e12 --gpu h100_sxm --price h100_sxm=2.1 --gpus 256:2048 --deadline 60d",
    "how many H100s, at your own price",
    NULL,
};
static const char *const models_examples[] = {
    "foretell models llama",
    "the models whose name contains \"llama\"",
    "foretell models llama-3-8b",
    "one model: its shape, its parameters and where they come from",
    NULL,
};

static const char *const kernel_examples[] = {
    "foretell kernel gemm -m 4096 -n 4096 -k 4096 --gpu h200_sxm",
    "a bf16 matrix product",
    "foretell kernel gemm -m 8192 -n 50257 -k 768 --gpu h200_sxm",
    "a vocabulary that was not padded",
    "foretell kernel attention --batch 4 --heads 32 --kv-heads 8 --q-len 1 --kv-len 8192 --head-dim 128 --gpu h100_sxm "
    "--gpu mi300x",
    "decoding on two GPUs, side by side",
    "foretell kernel gemm -m 4096 -k 4096 --gpu a100_sxm_80gb --sweep n=128:8192:128",
    "the staircase of tiles and waves",
    NULL,
};
static const char *const compare_examples[] = {
    "foretell compare eager.json compiled.json",
    "what compiling changes, kernel by kernel",
    "foretell compare a.json b.json c.json --json",
    "three answers against the first, for programs",
    NULL,
};
static const char *const gpus_examples[] = {
    "foretell gpus --vendor nvidia --dtype fp8 --min-memory-gib 80",
    "which GPUs can run an fp8 model of 70 GiB",
    "foretell gpus h200_sxm",
    "everything about one GPU, with sources",
    NULL,
};
static const char *const fit_examples[] = {
    "foretell fit --data measurements -o mine.ftp",
    "a predictor from your own measurements",
    "foretell fit --exclude-gpu h200_sxm -o unseen.ftp",
    "as if nobody had measured an H200",
    "foretell fit --calibrate calibration-h200_sxm.jsonl -o h200.ftcal",
    "what five minutes of foretell calibrate teach about one GPU; --calibration h200.ftcal then uses it",
    NULL,
};
static const char *const calibrate_examples[] = {
    "foretell calibrate --minutes 5 -o mine.jsonl",
    "five minutes of this machine's GPU: mine.jsonl, and mine.ftcal for --calibration",
    "foretell calibrate --minutes 10 --resume mine.jsonl",
    "five more",
    NULL,
};
static const char *const validate_examples[] = {
    "foretell validate",
    "the shipped predictor against the shipped measurements",
    "foretell validate --predictor roofline --family gemm_tensor",
    "what a roofline alone would give",
    NULL,
};
static const char *const collective_examples[] = {
    "foretell collective all_reduce --bytes 1e9 --ranks 8 --gpu h100_sxm --gpu a100_sxm_80gb",
    "a gigabyte summed inside a node, on two kinds of GPU",
    "foretell collective all_gather --bytes 1e8 --ranks 64 --gpu h100_sxm --interconnect \"8x200 Gbps HDR/node\"",
    "eight nodes behind a network in words",
    NULL,
};
static const char *const batch_examples[] = {
    "foretell batch requests.jsonl > answers.jsonl",
    "one JSON request per line in, one answer per line out",
    "foretell batch --shard 3/8 requests.jsonl > answers.3",
    "the third of eight parts, for job arrays; cat answers.* is what one run writes",
    NULL,
};

static const char *const web_examples[] = {
    "foretell web --open",
    "the page at http://127.0.0.1:8080/",
    "foretell web --files ~/models",
    "requests may name configs, ONNX files and traces under that folder",
    NULL,
};

static const char *const trace_examples[] = {
    "foretell trace run.json.gz",
    "what torch.profiler recorded: what waits, which kernels are slower than they should be",
    "foretell trace run.json.gz --gpu h100_sxm --gpu b200",
    "the same run on other GPUs",
    "foretell trace run.json.gz --on a100_pcie_80gb --json",
    "say which GPU recorded it",
    NULL};

static const char *const schema_examples[] = {
    "foretell schema > foretell.schema.json",
    "requests of every task, and their answers under $defs, for an editor or a validator",
    "foretell schema plan",
    "those of one task",
    NULL,
};

static const char *const doctor_examples[] = {
    "foretell doctor",
    "this machine, and what its forecasts would rest on",
    "foretell doctor --gpu rtx_5090 --json",
    "the same for another GPU, as JSON",
    NULL,
};

const cli_command cli_commands[] = {
    {CLI_TRAIN, "train", "MODEL", 1, 1, "one training step: time, memory, tokens/s, MFU, where the time goes",
     "Forecasts one training step of a model, on one GPU or laid out over many. MODEL is a catalogue name (foretell "
     "models lists them), a "
     "Hugging Face config.json or a folder that holds one. A step that does not fit in memory is forecast all the "
     "same, with the smallest change that makes it fit; the exit status is then 1.",
     train_examples, cli_train},
    {CLI_INFER, "infer", "MODEL", 1, 1, "prefill (TTFT), decode (TPOT), cache capacity, offline throughput",
     "Forecasts prefill and decode of a model on one GPU, or with --tp on several, over batches and context lengths, "
     "how many tokens its cache "
     "holds, and with --isl and --osl how many tokens per second it makes of a large set of prompts. Models that "
     "generate nothing (bert, vit) are forecast as forward passes.",
     infer_examples, cli_infer},
    {CLI_SERVE, "serve", "MODEL", 1, 1, "many requests at once: TTFT, TPOT, percentiles, goodput, what bounds it",
     "Simulates a serving engine (vLLM, SGLang, TensorRT-LLM) under load: clients that wait for their answers "
     "(--concurrency), requests at a rate (--rate) or a log (--trace), iteration by iteration, on forecasts of the "
     "engine's own kernels. Prints what clients see, with intervals, how the cache fills, what limits the engine, and "
     "with --slo which share of requests is good; --find rate looks for the highest rate that meets --slo. If requests "
     "come faster than they are served, or the objectives are missed, the exit status is 1.",
     serve_examples, cli_serve},
    {CLI_LARGEST, "largest", "", 0, 0, "the largest model of a family that trains or serves on given GPUs",
     "Grows a model along a family of shapes until it no longer fits, and says how long the largest one trains. Over "
     "several GPUs it trains as FSDP does, with parameters and states sharded over all of them, and serves with tensor "
     "parallelism.",
     largest_examples, cli_largest},
    {CLI_SCALE, "scale", "MODEL", 1, 1, "scaling rooflines: critical batch, TP, EP and PP limits, scaling curves",
     "Prints where arithmetic and exchanges take equally long, as formulas with their numbers: tokens per GPU for data "
     "parallel and FSDP, degrees of tensor parallel, the two domains of expert parallel, a pipeline's share of sends; "
     "and beside each what the timeline says. Then it forecasts the layout on more and more GPUs, at a constant global "
     "batch (strong scaling) and at constant tokens per GPU (weak). By default --zero is 3, or 1 with --pp.",
     scale_examples, cli_scale},
    {CLI_PLANS, "plan", "MODEL", 1, 1, "the best layout of a training job on N GPUs, proven, and why others lose",
     "Tries every layout that a framework accepts: tensor, pipeline, context, expert and data ranks, pipeline chunks, "
     "sharding, micro-batch, recomputation. Layouts are forecast in the order of the least time they can take, until "
     "no other can be among those shown. Degrees given as flags are kept. Exit status 1: nothing fits; the answer says "
     "how many GPUs would do.",
     plan_examples, cli_plan},
    {CLI_CHOOSE, "choose", "MODEL", 1, 1, "which GPUs and how many: days, dollars, energy, and why others lose",
     "Plans a training run on every kind and number of GPUs asked for, and counts days with failures and checkpoints, "
     "dollars at public prices or yours, energy and carbon. Shows the front of days against dollars with its knee, the "
     "choice, and what each other one loses by. Exit status 1: none meets the deadline and the budget, or nothing "
     "fits.",
     choose_examples, cli_choose},
    {CLI_KERNEL, "kernel", "OP", 1, 1, "one kernel: time with an interval, what holds it back, tile, waves, roofline",
     "Forecasts one operator on one or more GPUs. OP is gemm, linear, matmul, bmm, attention, mla, elementwise, "
     "conv2d, moe, "
     "optimizer, quantize, dequantize, copy; a row operator: softmax, log_softmax, layernorm, rmsnorm, cross_entropy, "
     "embedding, cumsum, argmax, sum_rows, sum_cols, mean_all, transpose_copy, cat_halves, bias_add; or the name of an "
     "elementwise operator. Any other name is forecast as bound by the memory it moves (--bytes).",
     kernel_examples, cli_kernel},
    {CLI_EXCHANGE, "collective", "OP", 1, 1,
     "one exchange among GPUs: time, interval, bandwidth, which links it crosses",
     "Forecasts one exchange among ranks, as nccl-tests measures it. OP is all_reduce, all_gather, reduce_scatter, "
     "all_to_all, broadcast, reduce or send_recv. Ranks fill one node after another; --stride 8 puts them on a node "
     "each.",
     collective_examples, cli_collective},
    {CLI_COMPARE, "compare", "FILE ...", 1, -1, "what differs between answers, and why one is faster",
     "Compares answers, or requests that are answered first, with the first one: what was asked differently, the step "
     "part by part, and which kernels make the difference. A file holds one answer or request, or one on each line. "
     "foretell train ... --json --detail kernels saves an answer with its request and its kernels. Answers of "
     "different tasks or versions are refused.",
     compare_examples, cli_compare},
    {CLI_TRACE, "trace", "FILE", 1, 1, "a profiler trace: regime, gaps, slow kernels; --gpu forecasts it elsewhere",
     "Reads what torch.profiler's export_chrome_trace wrote, plain or gzipped, of any size (record_shapes=True, and "
     "profiler.step() after each step). Says what held the steps, what the host did while the GPU waited, whether "
     "products ran on tensor cores, and which operators take longer than they should on that GPU. With --gpu every "
     "operator's measured time is scaled by the ratio of its forecasts there and here, and the run is replayed. A "
     "trace "
     "without kernels is forecast from its operators alone.",
     trace_examples, cli_trace},
    {CLI_MODELS, "models", "[PATTERN]", 0, 1, "the known models, or everything about one",
     "Lists the catalogue: name, architecture, parameters, layers, width. With the name of a model, a config.json or a "
     "folder that holds one, prints its sheet; with another word, the models whose name contains it; a star matches "
     "anything.",
     models_examples, cli_models},
    {CLI_GPUS, "gpus", "[NAME ...]", 0, -1, "the known GPUs, or everything about some of them",
     "Lists the catalogue. With names, or with spec files of your own, prints each one's full sheet: peaks and machine "
     "balance per number format, the memory hierarchy, what looks wrong with it, and where every figure comes from.",
     gpus_examples, cli_gpus},
    {CLI_FIT, "fit", "", 0, 0, "train a predictor from measurements",
     "Fits the whole predictor and prints its errors on rows it did not see. With --calibrate, adapts a predictor to "
     "one GPU from measurements that foretell calibrate took there, and prints the errors of points held out, before "
     "and after. The same measurements give the same bytes, on any number of threads.",
     fit_examples, cli_fit},
    {CLI_CALIBRATE, "calibrate", "", 0, 0, "measure this machine's GPU and adapt the forecasts to it",
     "Measures kernels on this machine's GPU with PyTorch for a few minutes, starting where the forecast is worst or "
     "least certain; then fits a calibration to them (fit --calibrate) that every command accepts with --calibration. "
     "Ctrl-C stops measuring and loses nothing; --resume continues.",
     calibrate_examples, cli_calibrate},
    {CLI_VALIDATE, "validate", "", 0, 0, "measured against forecast: errors by family; exit 1 over the budget",
     "Forecasts every measured case and prints the errors by family, and the share of cases whose truth lay inside the "
     "interval. If there is a budget beside the measurements (budget.json), or one is given, errors above it are named "
     "and the exit status is 1.",
     validate_examples, cli_validate},
    {CLI_BATCH, "batch", "[FILE]", 0, 1, "JSON Lines in from FILE or stdin, JSON Lines out, on all cores",
     "Answers one request per line, in order. A line that cannot be answered gets an error object on its own line and "
     "the batch goes on. Blank lines are skipped; lines over 16 MiB are refused one by one. With --shard I/N the "
     "requests must be a file: it is cut into N parts at line breaks, and only the I-th is answered.",
     batch_examples, cli_batch},
    {CLI_SCHEMA, "schema", "[TASK]", 0, 1, "requests and answers as JSON Schema",
     "Prints the JSON Schema (draft 2020-12) of requests as batch reads them: its root is a request, $defs hold "
     "request.TASK, answer.TASK and error. The same file is installed as share/foretell/schema.json.",
     schema_examples, cli_schema},
    {CLI_WEB, "web", "", 0, 0, "the page in a browser, answered by this machine",
     "Serves the page and answers it: POST /api/answer takes a request, /api/batch JSON Lines. Only this machine can "
     "reach it unless --listen says otherwise. Requests read no files unless --files names a folder, and none outside "
     "it. Prints its address; Ctrl-C ends it.",
     web_examples, cli_web},
    {CLI_DOCTOR, "doctor", "", 0, 0, "what is built in, which predictor and settings are used, whether a GPU is here",
     "Prints what this program was built with, which predictor and calibration it would use, which settings it found, "
     "and which GPU NVIDIA's driver shows. For that GPU, or those named, it says where forecasts would come from: "
     "learned there, from measurements of a sibling, or from its spec sheet alone.",
     doctor_examples, cli_doctor},
    {CLI_HELP, "help", "[COMMAND]", 0, 1, "this text, or that of a command",
     "Prints what a command does and its options.", NULL, cli_help},
};
const int cli_command_count = (int)(sizeof cli_commands / sizeof *cli_commands);

const cli_command *cli_command_find(const char *name)
{
    for (int i = 0; i < cli_command_count; i++)
        if (!strcmp(cli_commands[i].name, name)) return &cli_commands[i];
    return NULL;
}
