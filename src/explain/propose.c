/* propose.c: which moves are worth a forecast. */
#include <math.h>

#include "explain/moves.h"
#include "model/pytorch.h"
#include "model/stack.h"
#include "ranks/ranks.h"

typedef struct proposals {
    const ft_change *now;
    ft_move *out;
    size_t count;
} proposals;

static void propose_on(proposals *p, ft_move_kind kind, int64_t to, const ft_device *device)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->out[i].kind == kind && p->out[i].to == to && p->out[i].device == device) return;
    if (p->count < FT_MOST_MOVES) p->out[p->count++] = (ft_move){kind, to, device};
}

static void propose(proposals *p, ft_move_kind kind, int64_t to) { propose_on(p, kind, to, NULL); }

static bool wide(ft_dtype d) { return d == FT_FP32 || d == FT_TF32 || d == FT_FP64; }

static bool transformer(const ft_arch *a) { return a->design == FT_DECODER_ONLY || a->design == FT_ENCODER_ONLY; }

/* -- sizes ------------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Tensor cores want rows that start at multiples of 16 bytes, and are best fed in multiples of 128 bytes (NVIDIA,
 * "Matrix Multiplication Background User's Guide": 8 and 64 elements of 16 bits); MFMA units likewise. Of the two the
 * wider one also fills tiles of 64 and 128 columns. Tensor ranks cut before the product sees it. */
static void propose_sizes(proposals *p)
{
    const ft_arch *a = p->now->arch;
    double bytes = ft_dtype_bytes(p->now->work.dtype);
    int64_t whole = (int64_t)(128 / (bytes > 0 ? bytes : 2)), ranks = p->now->parallel.tp;
    if (whole > 128) whole = 128;
    if (a->design == FT_CUSTOM) return;
    if (a->vocab > 1 && a->vocab % (whole * ranks)) propose(p, FT_MOVE_VOCAB, round_up(a->vocab, whole * ranks));
    if (!transformer(a)) return;
    if (a->ffn > 0 && a->ffn % (whole * ranks)) propose(p, FT_MOVE_FFN, round_up(a->ffn, whole * ranks));
    if (a->hidden % whole == 0 || a->heads < 1) return;
    for (int64_t to = round_up(a->hidden, whole); to < 2 * a->hidden; to += whole) /* the first that heads divide */
        if (to % a->heads == 0 && to / a->heads % 8 == 0) {
            propose(p, FT_MOVE_HIDDEN, to);
            break;
        }
}

/* The dearest product: its waves tell at which batch the last one is full. */
static const ft_forecast *dearest_product(const ft_graph *g, const ft_step *step)
{
    const ft_forecast *best = NULL;
    double most = 0;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        double ms = k->forecast.ms * k->times;
        if (g->nodes[k->node].op.kind != FT_OP_GEMM || k->forecast.tile_m == 0 || ms <= most) continue;
        most = ms;
        best = &k->forecast;
    }
    return best;
}

static void propose_batches(proposals *p, const ft_graph *g, const ft_step *step)
{
    const ft_workload *w = &p->now->work;
    const ft_forecast *f = dearest_product(g, step);
    int64_t all = w->batch * w->accumulate;
    bool training = w->task == FT_TRAIN, many = training && w->accumulate > 1;
    for (int64_t by = 2; by <= 8; by *= 2)
        if (many && w->accumulate % by == 0) propose(p, FT_MOVE_MICRO, w->batch * by);
    if (many && w->batch % 2 == 0 && p->now->parallel.pp > 1) propose(p, FT_MOVE_MICRO, w->batch / 2);
    if (many || all > (int64_t)1 << 30) return;
    propose(p, FT_MOVE_BATCH, w->batch * 2);
    if (w->task != FT_TRAIN) propose(p, FT_MOVE_BATCH, w->batch * 4);
    /* Tiles grow with the batch: the largest one within the waves that already run, and the one a wave below. */
    if (!f || f->waves > 16) return;
    double waves = ceil(f->waves - 1e-9), per = f->waves / (double)w->batch;
    int64_t up = (int64_t)floor(waves / per + 1e-9), down = (int64_t)floor((waves - 1) / per + 1e-9);
    if (up > w->batch && up < 2 * w->batch) propose(p, FT_MOVE_BATCH, up);
    if (down > w->batch / 2 && down < w->batch) propose(p, FT_MOVE_BATCH, down);
}

/* -- how it runs ------------------------------------------------------------------------------- */

static void propose_formats(proposals *p)
{
    const ft_workload *w = &p->now->work;
    const double *peak = p->now->device->peak_tflops;
    ft_dtype half = peak[FT_BF16] > 0 ? FT_BF16 : FT_FP16;
    bool training = w->task == FT_TRAIN;
    if (w->dtype == FT_FP32 && peak[FT_TF32] > 0) propose(p, FT_MOVE_DTYPE, FT_TF32);
    if (wide(w->dtype) && peak[half] > 0) propose(p, FT_MOVE_DTYPE, training ? half | FT_MOVE_AUTOCAST : half);
    if (w->autocast && peak[half] > 0) propose(p, FT_MOVE_DTYPE, half);
    if (!wide(w->dtype) && !w->autocast && ft_dtype_bytes(w->dtype) == 2 && peak[FT_FP8] > 0 &&
        transformer(p->now->arch))
        propose(p, FT_MOVE_DTYPE, FT_FP8);
    if (w->task == FT_DECODE && ft_dtype_bytes(w->kv_dtype) > 1 && p->now->arch->design == FT_DECODER_ONLY)
        propose(p, FT_MOVE_KV, FT_FP8);
    if (training || w->task == FT_FORWARD_PASS) return;
    double bits = w->weight_bits > 0 ? w->weight_bits : 8 * ft_dtype_bytes(w->dtype);
    if (bits > 8) propose(p, FT_MOVE_WEIGHTS, 8);
    if (bits > 4) propose(p, FT_MOVE_WEIGHTS, 4);
}

/* Versions of PyTorch before 2.0 have no compiler. */
static void propose_run(proposals *p, ft_execution to)
{
    const ft_pytorch *version = p->now->work.pytorch;
    const bool compiles = to == FT_RUN_COMPILE || to == FT_RUN_CUDA_GRAPH;
    if (!version || version->compiles || !compiles) propose(p, FT_MOVE_EXECUTION, to);
}

static void propose_loss(proposals *p)
{
    const ft_workload *w = &p->now->work;
    const ft_arch *a = p->now->arch;
    const bool written = ft__stack_has_kernels_for(ft__default_stacks[FT_STACK_FOR_FUSED_LINEAR], a);
    const bool plain = w->trainer == FT_TRAINER_SFT && ft__parallel_alone(&p->now->parallel);
    if (w->loss == FT_ENTROPY_FUSED_LINEAR || !written || !plain || !ft__stack_takes_fused_linear(w, a)) return;
    propose(p, FT_MOVE_LOSS, FT_ENTROPY_FUSED_LINEAR);
}

static void propose_execution(proposals *p)
{
    const ft_workload *w = &p->now->work;
    bool training = w->task == FT_TRAIN;
    const bool written = w->execution == FT_RUN_EAGER || w->execution == FT_RUN_TORCHSCRIPT;
    if (written || w->execution == FT_RUN_FUSED) {
        propose_run(p, FT_RUN_COMPILE);
        if (written && training && transformer(p->now->arch)) propose_run(p, FT_RUN_FUSED);
        propose_run(p, FT_RUN_CUDA_GRAPH);
    }
    if (w->execution == FT_RUN_COMPILE) propose_run(p, FT_RUN_CUDA_GRAPH);
    if (w->attention != FT_FLASH) propose(p, FT_MOVE_ATTENTION, FT_FLASH);
    if (w->nchw) propose(p, FT_MOVE_IMAGES, 0);
    if (w->task == FT_DECODE && w->cache == FT_CACHE_DYNAMIC) {
        propose(p, FT_MOVE_CACHE, FT_CACHE_STATIC);
        propose(p, FT_MOVE_CACHE, FT_CACHE_PAGED);
    }
    if (!training) return;
    propose_loss(p);
    if (w->optimizer == FT_ADAMW_FOREACH || w->optimizer == FT_ADAMW_LOOP) propose(p, FT_MOVE_OPTIMIZER, FT_ADAMW);
    if (w->recompute != FT_RECOMPUTE_NONE) propose(p, FT_MOVE_RECOMPUTE, FT_RECOMPUTE_NONE);
    if (w->recompute == FT_RECOMPUTE_FULL) propose(p, FT_MOVE_RECOMPUTE, FT_RECOMPUTE_SELECTIVE);
}

static void propose_layout(proposals *p, const ft_step *step)
{
    const ft_parallel *l = &p->now->parallel;
    if (ft__parallel_alone(l) || p->now->work.task != FT_TRAIN) return;
    for (int s = 0; s < FT_SHIFTS; s++) propose(p, FT_MOVE_DEGREES, s);
    for (int z = 0; z <= 3; z++)
        if (l->dp > 1 && z != l->zero && (z < 2 || l->pp == 1)) propose(p, FT_MOVE_ZERO, z);
    if (l->tp > 1 && !l->sp) propose(p, FT_MOVE_SEQUENCE, 1);
    if (l->tp > 1 && l->sp && !ft__ranks_in_pieces(l, &p->now->work)) propose(p, FT_MOVE_PIECES, 1);
    if (l->dp * l->cp > 1 && ft__ranks_by_parameter(l, &p->now->work)) propose(p, FT_MOVE_GATHER, 1);
    if (l->ep > 1 && !l->dispatch_once && p->now->arch->topk > 1) propose(p, FT_MOVE_DISPATCH, 1);
    bool pairs = l->pp > 1 ? l->vpp > 1 || l->schedule == FT_DUALPIPE : p->now->work.accumulate > 1;
    if (l->ep > 1 && pairs && ft__ranks_stack(l, &p->now->work)->grouped_experts && !ft__expert_overlaps(l))
        propose(p, FT_MOVE_EXPERT_OVERLAP, 1);
    if (l->ep > 1 && l->tp > 1 && l->sp) propose(p, FT_MOVE_WHOLE_EXPERTS, 1);
    if (l->pp > 1) {
        for (int64_t chunks = 2; chunks <= 8; chunks *= 2)
            if (chunks != l->vpp && ft__layout_deal(p->now->arch->layers, l->pp * chunks, l->rest) != FT_DEAL_FRONT)
                propose(p, FT_MOVE_CHUNKS, chunks);
        if (l->schedule != FT_ZERO_BUBBLE) propose(p, FT_MOVE_SCHEDULE, FT_ZERO_BUBBLE);
    }
    if (!ft__ranks_overlaps(l, &p->now->work)) propose(p, FT_MOVE_OVERLAP, 1);
    if (!(step->comm_exposed_ms > 0) || l->dp < 2) return;
    propose(p, FT_MOVE_BUCKET, 100);
    propose(p, FT_MOVE_BUCKET, 400);
    if (ft__ranks_reduce_bytes(l, &p->now->work) > 2) propose(p, FT_MOVE_WIRE, 2);
}

static void propose_loading(proposals *p, double compute_ms)
{
    const ft_loader *l = &p->now->loader;
    if (!l->given) return;
    int64_t enough = ft__loader_workers(l, ft__change_fed(p->now), compute_ms);
    if (enough > l->workers) propose(p, FT_MOVE_WORKERS, enough);
    if (l->pageable) propose(p, FT_MOVE_PINNED, 1);
    if (l->samples_per_s_disk > 0 && l->disk_gbps > 0 && l->sample_bytes > 0) propose(p, FT_MOVE_PACKED, 1);
}

size_t ft__moves_for_speed(const ft_change *now, const ft_graph *g, const ft_step *step, double compute_ms,
                           const ft_device *const *gpus, size_t gpu_count, ft_move *out)
{
    proposals p = {now, out, 0};
    propose_sizes(&p);
    propose_execution(&p);
    propose_formats(&p);
    propose_batches(&p, g, step);
    propose_layout(&p, step);
    propose_loading(&p, compute_ms);
    for (size_t i = 0; i < gpu_count; i++) propose_on(&p, FT_MOVE_GPU, 0, gpus[i]);
    return p.count;
}

/* -- a table of techniques --------------------------------------------------------------------- */

size_t ft__moves_for_table(const ft_change *now, double compute_ms, ft_move *out)
{
    proposals p = {now, out, 0};
    const ft_workload *w = &now->work;
    const double *peak = now->device->peak_tflops;
    bool training = w->task == FT_TRAIN;
    if (training && w->batch % 2 == 0) propose(&p, FT_MOVE_MICRO, w->batch / 2); /* accumulation */
    if (training && w->accumulate % 2 == 0) propose(&p, FT_MOVE_MICRO, w->batch * 2);
    if (w->batch > 1) propose(&p, FT_MOVE_BATCH, w->batch / 2);
    propose(&p, FT_MOVE_BATCH, w->batch * 2);
    if (training)
        for (int r = 0; r <= FT_RECOMPUTE_FULL; r++) propose(&p, FT_MOVE_RECOMPUTE, r);
    static const ft_dtype formats[] = {FT_FP32, FT_TF32, FT_FP16, FT_BF16, FT_FP8};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (peak[formats[i]] > 0) propose(&p, FT_MOVE_DTYPE, formats[i]);
    if (training && peak[FT_BF16] > 0) propose(&p, FT_MOVE_DTYPE, FT_BF16 | FT_MOVE_AUTOCAST);
    for (int e = FT_RUN_EAGER; e <= FT_RUN_CUDA_GRAPH; e++) propose_run(&p, (ft_execution)e);
    propose(&p, FT_MOVE_ATTENTION, FT_FLASH);
    propose(&p, FT_MOVE_ATTENTION, FT_EAGER);
    if (training) {
        propose_loss(&p);
        static const ft_optimizer optimizers[] = {FT_ADAMW,     FT_ADAMW_FOREACH, FT_ADAMW_8BIT,
                                                  FT_ADAFACTOR, FT_SGD_MOMENTUM,  FT_SGD};
        for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
            propose(&p, FT_MOVE_OPTIMIZER, optimizers[i]);
        if (w->lora_rank == 0) propose(&p, FT_MOVE_ADAPTERS, 16);
        bool alone = ft__parallel_alone(&now->parallel);
        for (int z = 0; z <= 3; z++) propose(&p, alone ? FT_MOVE_COPIES : FT_MOVE_ZERO, z);
    } else {
        propose(&p, FT_MOVE_WEIGHTS, 8);
        propose(&p, FT_MOVE_WEIGHTS, 4);
        if (w->task == FT_DECODE) propose(&p, FT_MOVE_KV, FT_FP8);
    }
    propose_loading(&p, compute_ms);
    return p.count;
}
