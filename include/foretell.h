/* foretell.h: the public interface of libforetell, readable from top to bottom. Over 400 lines: it is one contract,
 * and half of it says who owns what.
 *
 * The common case is five calls:
 *
 *     ft_context *ft;
 *     ft_session *session;
 *     ft_error err;
 *     const char *request = "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":4096,\"n\":4096,\"k\":4096,"
 *                           "\"gpu\":\"h100_sxm\"}";
 *     if (ft_open(&ft, NULL, &err) != FT_OK) return complain(err.message);
 *     if (ft_session_open(&session, ft, &err) != FT_OK) return complain(err.message);
 *     puts(ft_session_answer(session, request, strlen(request), NULL)); // {"ok":true,"ms":0.21,"low_ms":0.2,...}
 *     ft_session_close(session);
 *     ft_close(ft);
 *
 * Contexts and sessions. A context is a predictor and a catalogue of devices: expensive to open, read-only
 * afterwards. A session is one thread's working memory: devices and models that requests spelled out, kernels already
 * forecast, room to build graphs in. Equal requests get equal answers from every session, old or new; an old one is
 * only faster. Use a session as you would a ZSTD_CCtx: one for each thread, kept as long as there is work.
 *
 * Threads. Any number of threads may use one context at the same time. A session is for one thread at a time. Your own
 * structs may be shared as you share any other memory. The library keeps no mutable global, prints nothing, reads no
 * environment variable, starts no thread and never exits.
 *
 * Ownership. Each function says who owns what. In short: a returned `char *` is yours, release it with free(); a
 * returned `const char *` is the library's and lives as long as the function says; structs are copied into your own
 * memory, and pointers inside them live until ft_close().
 *
 * Growth. Structs may get more members at their end. Functions that take or fill one are macros that pass its size as
 * your compiler saw it, as zlib's deflateInit does, so that a program keeps working with a newer library: members it
 * does not know are left out. Languages without macros call the function behind it, which ends in `_sized`.
 * Call a struct's init function before you fill it: members you have not heard of then have the right defaults.
 *
 * Units are part of names: _ms, _us, _bytes, _gbps (10^9 bytes per second), _tflops (10^12 per second).
 */
#ifndef FORETELL_H
#define FORETELL_H

#include "foretell_types.h" /* ft_status, ft_error, ft_dtype */

#ifdef __cplusplus
extern "C" {
#endif

#define FT_VERSION "0.1.0"
#define FT_VERSION_NUMBER 100 /* 10000 * major + 100 * minor + patch */

/* Version of the library at run time, which may be newer than this header. Any thread; the text is static. */
FT_API const char *ft_version(void);
FT_API int ft_version_number(void);

/* -- devices ----------------------------------------------------------------------------------- */

typedef enum ft_vendor { FT_VENDOR_NVIDIA, FT_VENDOR_AMD, FT_VENDOR_INTEL, FT_VENDOR_OTHER } ft_vendor;

/* How programs reach the matrix units. mma: by warps, from registers (Volta on, and GeForce to this day); wgmma: by
 * groups of four warps, from shared memory, asynchronously (Hopper); tcgen05: by one thread for a whole block, into
 * tensor memory (data-centre Blackwell); mfma: AMD's wavefronts; xmx: Intel's vector engines. */
typedef enum ft_matrix_issue {
    FT_ISSUE_NONE,
    FT_ISSUE_MMA,
    FT_ISSUE_WGMMA,
    FT_ISSUE_TCGEN05,
    FT_ISSUE_MFMA,
    FT_ISSUE_XMX,
    FT_ISSUE_COUNT
} ft_matrix_issue;

/* How operands get into shared memory: through registers, past them by cp.async, or as whole tiles by the tensor memory
 * accelerator (TMA). */
typedef enum ft_async_copy { FT_COPY_NONE, FT_COPY_CP_ASYNC, FT_COPY_TMA, FT_COPY_COUNT } ft_async_copy;

/* What a GPU is, as far as its spec sheet says. Peaks are dense, in TFLOP/s (TOP/s for int8); 0 where
 * the GPU has no such format. */
typedef struct ft_device {
    char name[64];  /* "h100_sxm" */
    char title[64]; /* "NVIDIA H100 SXM5 80 GB" */
    ft_vendor vendor;
    char architecture[32];       /* chip: "GH100" */
    char generation[24];         /* GPUs with the same label use each other's measurements. What a GPU does follows from
                                 its figures and traits, never from this word */
    char compute_capability[12]; /* "sm_90", "gfx942" */
    int year;                    /* for catalogues and readers; nothing is computed from it */
    int sms;                     /* SMs, CUs or Xe cores */
    int lanes_per_sm;            /* fp32 FMA lanes */
    double matrix_fma_per_clk_sm;   /* fp16 fused multiply-adds per clock and SM in the matrix units; 0: none */
    double uncapped_fma_per_clk_sm; /* the same without a cap on fp32 accumulation (GeForce) or on everything (H20):
                                       what the rest of the SM is built to feed; never less */
    double base_mhz, boost_mhz;
    double running_mhz;   /* clock where neither power nor heat limits it; 0: boost_mhz */
    double matrix_mhz;    /* the clock that the published matrix peak implies */
    double sustained_mhz; /* clock of a long matrix job; 0: unknown */
    double tdp_w;
    double process_nm;
    double memory_gib, memory_gbps;
    bool memory_is_hbm;
    double l2_mib;           /* last-level cache on the die (Infinity Cache counts for AMD) */
    double l2_bytes_per_clk; /* reads, over the whole GPU; 0: unknown */
    double smem_kib_per_sm, regs_kib_per_sm;
    int max_warps_per_sm;
    ft_matrix_issue matrix_issue;
    ft_async_copy async_copy;
    int issue_lanes_per_sm;    /* lanes that the schedulers issue to per clock, in any pipe */
    bool dual_issue;           /* a scheduler issues two instructions of a warp at once (Maxwell, Pascal) */
    int dies;                  /* compute dies that work as one GPU */
    int l2_partitions;         /* parts of the last-level cache that each copy what another holds */
    bool inline_ecc;           /* error correction is on by default and keeps its bits in the memory itself */
    double matrix_pj_per_flop; /* bf16 on matrix units, including operand movement; 0: unknown */
    double peak_tflops[FT_DTYPE_ROOM];
    double vector_tflops[FT_DTYPE_ROOM]; /* without matrix units; fp32 of a GPU whose fp32 peak is a matrix peak */
    char link_kind[24];                  /* "nvlink4", "xgmi3", "pcie5" */
    double link_gbps_per_direction;
    int link_gpus;
    bool link_switched;     /* any pair at the full rate (NVSwitch), not a mesh */
    bool link_reduces;      /* the switch adds (NVLink SHARP) */
    double server_nic_gbit; /* network port of the servers it is sold in, Gbit/s */
    double pcie_gbps;
    double price_usd_per_hour; /* 0: unknown */
    int exp_per_clk_per_sm;    /* exponentials that an SM starts per clock; 0: as on most GPUs */
    double power_cap_w;        /* limit set below tdp_w (nvidia-smi -pl); 0: none */
    bool link_apart;           /* the bridge of a pair is sold apart: joins those of whom it is said */
} ft_device;

/* -- operators --------------------------------------------------------------------------------- */

typedef enum ft_pass { FT_PASS_FWD, FT_PASS_BWD, FT_PASS_FWD_BWD } ft_pass;

/* The products of a convolution: its result, and the gradients of its input and of its filters. */
typedef enum ft_conv_part { FT_CONV_RESULT = 1, FT_CONV_INPUT = 2, FT_CONV_FILTER = 4 } ft_conv_part;
typedef enum ft_timing { FT_TIMING_DEVICE, FT_TIMING_OP } ft_timing; /* OP: one eager call with its launch gap */
/* Whose attention: the bare kernel of a framework, or the operator of a serving engine, which also writes the paged
 * cache. ANY is what was measured on that GPU: the bare kernel if it was, otherwise the fastest of the engines that
 * were, with an interval over all of them. */
typedef enum ft_engine {
    FT_ENGINE_ANY,
    FT_ENGINE_BARE,
    FT_ENGINE_TRTLLM,
    FT_ENGINE_VLLM,
    FT_ENGINE_SGLANG,
    FT_ENGINE_COUNT
} ft_engine;

/* How the weights of a product are stored, if not in the format it computes in; they are dequantised as they are read.
 * Bytes per element include the scales: fp8 in blocks of 128 x 128 with one fp32 scale, int4 in groups of 128 with an
 * fp16 scale and a zero point, nf4 in blocks of 64 with an fp32 scale, mxfp4 in blocks of 32 and nvfp4 in blocks of 16
 * with an 8-bit scale. From q4_k_m on they are llama.cpp's, in blocks of 32 or 256 weights (ggml-common.h). Where a
 * file mixes formats it is the mean over a gated feed-forward network, whose down projection has more bits
 * (llama-quant.cpp). */
#define FT_STORAGE_LIST(X)                                                     \
    X(FT_STORED_AS_COMPUTED, "dtype", 0.0)                                     \
    X(FT_STORED_FP8, "fp8", 1.0)                                               \
    X(FT_STORED_FP8_BLOCK, "fp8_block", 1.0 + 4.0 / 16384)                     \
    X(FT_STORED_INT8, "int8", 1.0)                                             \
    X(FT_STORED_INT4, "int4", 0.5 + 2.5 / 128)                                 \
    X(FT_STORED_NF4, "nf4", 0.5 + 4.0 / 64)                                    \
    X(FT_STORED_MXFP4, "mxfp4", 0.5 + 1.0 / 32)                                \
    X(FT_STORED_NVFP4, "nvfp4", 0.5 + 1.0 / 16)                                \
    X(FT_STORED_Q4_K_M, "q4_k_m", 144.0 / 256 + 11.0 / 256)                    \
    X(FT_STORED_Q6_K, "q6_k", 210.0 / 256)                                     \
    X(FT_STORED_Q8_0, "q8_0", 34.0 / 32)                                       \
    X(FT_STORED_Q2_K, "q2_k", (2 * 84.0 + 110.0) / 3 / 256)                    \
    X(FT_STORED_Q3_K_S, "q3_k_s", 110.0 / 256)                                 \
    X(FT_STORED_Q3_K_M, "q3_k_m", (2 * 110.0 + 146.0) / 3 / 256)               \
    X(FT_STORED_Q3_K_L, "q3_k_l", (2 * 110.0 + 176.0) / 3 / 256)               \
    X(FT_STORED_Q4_0, "q4_0", 18.0 / 32)                                       \
    X(FT_STORED_Q4_1, "q4_1", 20.0 / 32)                                       \
    X(FT_STORED_Q4_K_S, "q4_k_s", (2 * 144.0 + 148.0) / 3 / 256)               \
    X(FT_STORED_Q5_0, "q5_0", 22.0 / 32)                                       \
    X(FT_STORED_Q5_1, "q5_1", 24.0 / 32)                                       \
    X(FT_STORED_Q5_K_S, "q5_k_s", 176.0 / 256)                                 \
    X(FT_STORED_Q5_K_M, "q5_k_m", (2 * 176.0 + (176.0 + 210.0) / 2) / 3 / 256) \
    X(FT_STORED_IQ4_XS, "iq4_xs", 136.0 / 256)                                 \
    X(FT_STORED_IQ4_NL, "iq4_nl", 18.0 / 32)

typedef enum ft_storage {
#define X(code, name, bytes) code,
    FT_STORAGE_LIST(X)
#undef X
        FT_STORAGE_COUNT
} ft_storage;

/* Whose grouped products a mixture of experts runs. ANY: what the engine picks on that GPU for that format. */
typedef enum ft_moe_backend {
    FT_MOE_ANY,
    FT_MOE_CUTLASS,    /* TensorRT-LLM's, and FlashInfer's of vLLM and SGLang */
    FT_MOE_TRTLLM_GEN, /* the precompiled kernels of data-centre Blackwell */
    FT_MOE_TRITON,
    FT_MOE_MARLIN,
    FT_MOE_DEEPGEMM,
    FT_MOE_BACKEND_COUNT
} ft_moe_backend;

/* Whose kernel multiplies by weights with fewer bits than the activations. ANY: the fastest usual one for the format:
 * Marlin's for int4 and fp8, bitsandbytes' for nf4. */
typedef enum ft_weight_kernel {
    FT_WEIGHTS_ANY,
    FT_WEIGHTS_MARLIN,
    FT_WEIGHTS_CUTLASS, /* TensorRT-LLM's weight-only plugin */
    FT_WEIGHTS_AWQ,
    FT_WEIGHTS_GPTQ, /* ExLlama's */
    FT_WEIGHTS_BITSANDBYTES,
    FT_WEIGHTS_TORCHAO, /* and gpt-fast */
    FT_WEIGHTS_GGUF,    /* llama.cpp */
    FT_WEIGHT_KERNEL_COUNT
} ft_weight_kernel;

/* Whose attention kernel. OPEN is what a framework uses today: kernels made for the GPU's own matrix units. FLASH is
 * the FlashAttention package as it is installed on such a GPU. */
typedef enum ft_attention_library {
    FT_LIBRARY_OPEN,
    FT_LIBRARY_FLASH, /* the second generation up to Hopper, what was made for it on data-centre Blackwell */
    FT_LIBRARY_FLASH1,
    FT_LIBRARY_FLASH2, /* the second everywhere: mma instructions on Hopper and Blackwell too */
    FT_LIBRARY_FLASH3, /* made for Hopper; the second elsewhere */
    FT_LIBRARY_CUDNN,
    FT_LIBRARY_XFORMERS, /* memory-efficient attention, which sdpa calls "efficient" */
    FT_LIBRARY_TRITON,
    FT_LIBRARY_COUNT
} ft_attention_library;

/* Operator kinds with the JSON name that selects each. ROW operators share one struct and are told apart
 * by `name`; so are elementwise ones and optimizers. */
typedef enum ft_op_kind {
    FT_OP_GEMM,      /* C[m,n] = A[m,k] B[k,n];  b > 1: batched */
    FT_OP_ATTENTION, /* prefill, training and decode (q_len 1) */
    FT_OP_MLA,       /* multi-head latent attention */
    FT_OP_ELEMENTWISE,
    FT_OP_ROW, /* softmax, layernorm, reductions, transpose, embedding, ... on [rows, cols] */
    FT_OP_CONV2D,
    FT_OP_MOE, /* grouped GEMM: up, gate, activation, down over routed experts */
    FT_OP_OPTIMIZER,
    FT_OP_QUANTIZE,
    FT_OP_COLLECTIVE, /* one exchange among the GPUs of one NVLink, xGMI or PCIe domain */
    FT_OP_OTHER,      /* unknown name: memory-bound by its bytes */
    FT_OP_KIND_COUNT
} ft_op_kind;

/* How a pointwise kernel reaches its operands. FT_PATTERN_MIXED is added where their formats differ. */
typedef enum ft_pattern {
    FT_PATTERN_CONTIGUOUS,
    FT_PATTERN_SPREAD,
    FT_PATTERN_STRIDED,
    FT_PATTERN_MIXED = 4
} ft_pattern;

/* Exchanges among ranks, as NCCL names them. */
typedef enum ft_collective {
    FT_COLLECTIVE_ALL_REDUCE,
    FT_COLLECTIVE_ALL_GATHER,
    FT_COLLECTIVE_REDUCE_SCATTER,
    FT_COLLECTIVE_ALL_TO_ALL,
    FT_COLLECTIVE_BROADCAST,
    FT_COLLECTIVE_REDUCE,
    FT_COLLECTIVE_SEND_RECV,
    FT_COLLECTIVE_COUNT
} ft_collective;

typedef struct ft_op {
    ft_op_kind kind;
    const char *name;  /* "linear", "gelu", "softmax", "adamw_fused" ...; static or owned by the caller */
    ft_dtype dtype;    /* of the operands and of the math */
    ft_dtype kv_dtype; /* attention: of the cache */
    ft_pass pass;
    ft_timing timing;
    ft_engine engine; /* attention, moe */
    union {
        /* layout: "nn", "nt", "tn" or "tt", A then B; nt is nn.Linear. quantized: fp8/int8/fp4 operands arrive
         * quantised (1), are quantised on the fly (0), or as the GPU was measured (-1). by: an ft_weight_kernel, where
         * weights are stored in fewer bits */
        struct {
            int64_t b, m, n, k;
            char layout[4];
            bool bias;
            int quantized;
            int by;
        } gemm;
        struct {
            int64_t batch, heads, kv_heads, q_len, kv_len, head_dim, v_dim, window;
            bool causal;
            ft_attention_library library;
        } attention;
        struct {
            int64_t batch, heads, q_len, kv_len, kv_lora, rope_dim, nope_dim, v_dim;
            bool causal;
        } mla;
        /* ops_per_element > 0: a fused chain. bytes > 0: what it moves, where its operands differ in size or format.
         * pattern: an ft_pattern */
        struct {
            int64_t numel;
            int inputs;
            double ops_per_element, bytes;
            int pattern;
        } elementwise;
        struct {
            int64_t rows, cols, vocab;
        } row;
        /* parts: bits of ft_conv_part, where products run other than those of the pass: one gradient alone, or a
         * transposed convolution, which is the gradient of the input of one that goes the other way; else 0.
         * dilated: distance between taps (0 and 1: adjacent; 255: further). For convolutions of other than two
         * dimensions that are computed as this one: space, the number of dimensions if not two; depth, how often each
         * frame of a clip is read (0 and 1: once) */
        struct {
            int64_t n, c, h, w, k, r, s, stride, pad, groups;
            bool nhwc;
            unsigned char dilated;
            signed char space, depth;
            int parts;
        } conv;
        /* inter: of this GPU's slice. experts: over all ranks; ep: ranks that share the experts (0 and 1: one); tokens:
         * of all these ranks. backend: an ft_moe_backend. ungated: two matrices instead of three. drawn: tokens pick
         * their experts at random instead of in turn, so that E(1 - (1 - k/E)^T) of the E experts get any */
        struct {
            int64_t tokens, hidden, inter, topk, experts;
            double skew;
            int64_t ep;
            int backend;
            bool ungated, drawn;
        } moe;
        struct {
            int64_t params, tensors;
        } optimizer;
        struct {
            int64_t rows, cols;
        } quantize;
        /* op: an ft_collective. bytes: the whole buffer, as nccl-tests counts it. link_gbps: per GPU and direction.
         * switched: any pair at that rate; reduces: in the switch (NVLS); pcie: through the host's tree; nccl: its
         * version, 100 * major + minor, 0: a recent one. `dtype` is that of the numbers that are summed. */
        struct {
            int op;
            int64_t ranks;
            double bytes, link_gbps;
            bool switched, reduces, pcie;
            int nccl;
        } collective;
        struct {
            double bytes, flops;
        } other;
    } u;
    ft_storage weights; /* gemm, moe: format of the weights; dtype is then that of activations and arithmetic */
} ft_op;

/* -- forecasts --------------------------------------------------------------------------------- */

typedef enum ft_bound { FT_BOUND_COMPUTE, FT_BOUND_MEMORY, FT_BOUND_OVERHEAD, FT_BOUND_COMMUNICATION } ft_bound;
typedef enum ft_source {
    FT_SOURCE_LEARNED,
    FT_SOURCE_CALIBRATED,
    FT_SOURCE_SIBLING,
    FT_SOURCE_PHYSICS,
    FT_SOURCE_ROOFLINE
} ft_source;

typedef struct ft_forecast {
    double ms, low_ms, high_ms;
    ft_bound bound;
    ft_source source;            /* learned: this GPU was in the fit; calibrated: this very one was measured;
                              sibling: one of its generation was; physics: none of these;
                              roofline: no model for the operator */
    const char *kin;             /* the GPU whose measurements are closest; "" for none */
    const char *family;          /* "gemm_tensor", "attention" ... */
    double flops;                /* executed arithmetic, as the operator defines it */
    double bytes;                /* compulsory traffic to device memory */
    double intensity;            /* flops / bytes */
    double sustained_ms;         /* per kernel, run back to back for seconds: the power limit lowers the clock */
    double roofline_ms;          /* max(flops / peak, bytes / bandwidth): no kernel is faster */
    double launch_ms;            /* fixed cost inside ms */
    int tile_m, tile_n, split_k; /* 0 where the family has no tiles */
    double tiles, waves;
    char note[160]; /* "not 16-byte aligned: slow path", or empty */
} ft_forecast;
/* Any thread; static texts. */
FT_API const char *ft_bound_name(ft_bound b);
FT_API const char *ft_source_name(ft_source s);

/* -- the context ------------------------------------------------------------------------------- */

typedef struct ft_context ft_context;

typedef struct ft_options {
    const char *predictor;   /* NULL: the shipped one; a path; "roofline", "linear", "scaling:GPU" */
    double quantile;         /* share of cases that low..high should cover; 0 means 0.9 */
    const char *calibration; /* NULL: none; a file of `foretell fit --calibrate`, made on the same predictor */
    /* NULL: the shipped predictor. Otherwise the bytes of a predictor file, for programs that carry their own or have
     * no files (WebAssembly); aligned to 8. They stay yours and must not change until ft_close. `predictor` is then
     * NULL or the name of a baseline, never a path. */
    const void *predictor_data;
    size_t predictor_length;
} ft_options;
/* Any thread; fills your struct. */
FT_API void ft_options_init_sized(ft_options *options, size_t size);
#define ft_options_init(options) ft_options_init_sized(options, sizeof(ft_options))

/* Any thread. *out is yours: close it with ft_close. NULL options mean the defaults; of the options only
 * the address of predictor_data is kept. */
FT_API ft_status ft_open_sized(ft_context **out, const ft_options *options, size_t options_size, ft_error *err);
#define ft_open(out, options, err) ft_open_sized(out, options, sizeof(ft_options), err)
/* By one thread, after its sessions were closed. NULL is ignored. */
FT_API void ft_close(ft_context *ft);

/* -- the JSON door ----------------------------------------------------------------------------- */

/* One request object in, one answer object out (both described in docs/interface.md): one kernel, a whole model, or a
 * question that needs several: {"task":"train","model":"llama-3-8b","gpu":"h100_sxm","batch":2,"seq":4096}. Errors are
 * answers too: {"ok":false,"error":{...}}. */
typedef struct ft_session ft_session;

/* Any thread. *out is yours: close it with ft_session_close before the context, which it uses. */
FT_API ft_status ft_session_open(ft_session **out, const ft_context *ft, ft_error *err);
FT_API void ft_session_close(ft_session *session); /* NULL is ignored; one thread at a time */
/* `request` has `length` bytes and need not end in a zero byte. The answer ends in one; its length without that goes to
 * *answer_length unless that is NULL. The answer belongs to the session and lives until the next one. NULL: out of
 * memory; the session can still be used. One thread at a time. */
FT_API const char *ft_session_answer(ft_session *session, const char *request, size_t length, size_t *answer_length);

/* The same in one call, with a session of its own: simpler, but slower, as nothing is remembered. Any thread. The
 * answer is yours: free() it. NULL: out of memory. */
FT_API char *ft_answer(const ft_context *ft, const char *request);

/* -- the typed door ---------------------------------------------------------------------------- */

/* Devices are copied into *out. `name` is a catalogue name or the path of a spec file; `spec` a spec object as JSON
 * (docs/devices.md) of `length` bytes; neither is kept. Any thread. */
FT_API ft_status ft_device_find_sized(const ft_context *ft, const char *name, ft_device *out, size_t size,
                                      ft_error *err);
FT_API ft_status ft_device_read_sized(const ft_context *ft, const char *spec, size_t length, ft_device *out,
                                      size_t size, ft_error *err);
FT_API size_t ft_device_count(const ft_context *ft);
FT_API ft_status ft_device_at_sized(const ft_context *ft, size_t index, ft_device *out, size_t size, ft_error *err);
#define ft_device_find(ft, name, out, err) ft_device_find_sized(ft, name, out, sizeof(ft_device), err)
#define ft_device_read(ft, spec, length, out, err) ft_device_read_sized(ft, spec, length, out, sizeof(ft_device), err)
#define ft_device_at(ft, index, out, err) ft_device_at_sized(ft, index, out, sizeof(ft_device), err)

/* An operator by the name that JSON requests give it ("gemm", "bmm", "attention", "gelu", "softmax", "adamw_fused"),
 * with every member as such a request leaves it: bf16, forward, layout nt, one group. Any thread. Fill in the sizes
 * yourself; an unknown name is FT_OP_OTHER, forecast from its bytes. `name` is not copied: it must outlive the
 * operator. */
FT_API void ft_op_init_sized(ft_op *op, size_t size, const char *name);
#define ft_op_init(op, name) ft_op_init_sized(op, sizeof(ft_op), name)

/* Nothing is trusted: whatever the structs contain, the result is a forecast, or an error whose `where` names the wrong
 * member. Any thread; structs are read and filled, and not kept. */
FT_API ft_status ft_op_check_sized(const ft_op *op, size_t op_size, const ft_device *device, size_t device_size,
                                   ft_error *err);
FT_API ft_status ft_kernel_sized(const ft_context *ft, const ft_device *device, size_t device_size, const ft_op *op,
                                 size_t op_size, ft_forecast *out, size_t out_size, ft_error *err);
#define ft_op_check(op, device, err) ft_op_check_sized(op, sizeof(ft_op), device, sizeof(ft_device), err)
#define ft_kernel(ft, device, op, out, err) \
    ft_kernel_sized(ft, device, sizeof(ft_device), op, sizeof(ft_op), out, sizeof(ft_forecast), err)

#ifdef __cplusplus
}
#endif
#endif
