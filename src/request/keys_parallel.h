/* Keys inside `parallel`, `cluster` and `loader`, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_PARALLEL_H
#define FT_REQUEST_KEYS_PARALLEL_H

#define FT_PARALLEL_KEYS(FLAG, PLAIN)                                                                                  \
    FLAG(TP, "tp", WHOLE, 1, 1000000, NO_WORDS, 1, "tp", 0, "N", STEPS | INFER | SERVE,                                \
      "tensor parallel: matrix products split over this many GPUs",                                                    \
      "1: tensor parallel: ranks that each product is split "                                                          \
                                                             "over")                                                   \
    FLAG(PP, "pp", WHOLE, 1, 1000000, NO_WORDS, 1, "pp", 0, "N", STEPS | SERVE,                                        \
      "pipeline parallel: stages of layers", "1: pipeline parallel: stages of layers")                                 \
    FLAG(VPP, "vpp", WHOLE, 1, 1000000, NO_WORDS, 1, "vpp", 0, "N", STEPS,                                             \
      "virtual stages per GPU: an interleaved pipeline",                                                               \
      "1: virtual stages per GPU; above 1 the schedule is `interleaved`. pp × vpp divides the layers, or the layers "  \
      "plus one for the loss, or plus two for embedding and loss, and is at most 4096")                                \
    FLAG(DP, "dp", WHOLE, 1, 1000000, NO_WORDS, 1, "dp", 0, "N", TRAIN,                                                \
      "data parallel: copies of the model [what --gpus or --nodes leaves]",                                            \
      "1: data parallel: copies of the model, each with its own batches")                                              \
    FLAG(GPUS, "gpus", WHOLE, 1, 1000000, WORDS(count), DEPENDS, "gpus", 0, "N", TRAIN,                                \
      "GPUs that share the work: --dp takes what the other degrees leave [1, or those of --nodes]",                    \
      "how many GPUs, or `all` of the cluster's nodes: `dp` is then what tp × cp × pp leave; if all degrees are given "\
      "they must agree")                                                                                               \
    FLAG(CP, "cp", WHOLE, 1, 1000000, NO_WORDS, 1, "cp", 0, "N", STEPS | SERVE,                                        \
      "context parallel: sequences split over this many GPUs", "1: context parallel: ranks that share a sequence")     \
    FLAG(EP, "ep", WHOLE, 1, 1000000, NO_WORDS, 1, "ep", 0, "N", STEPS | INFER | SERVE,                                \
      "expert parallel: experts spread over data and context ranks",                                                   \
      "1: ranks of the data and context axes that experts are spread over (decoder-only models)")                      \
    FLAG(ETP, "etp", WHOLE, 1, 1000000, NO_WORDS, DEPENDS, "etp", 0, "N", STEPS,                                       \
      "tensor ranks that share an expert: all [--tp], or 1: experts spread over tensor ranks too",                     \
      "`tp`: every expert is cut over the tensor ranks; 1, with `sp`: experts are whole, and `ep` divides "            \
      "dp × cp × tp (Megatron-Core's expert-tensor-parallel-size)")                                                    \
    FLAG(ZERO, "zero", WHOLE, 0, 3, NO_WORDS, 0, "zero", 0, "N", TRAIN | PLANS,                                        \
      "sharded over data ranks: 1 optimizer states, 2 and gradients, 3 and parameters (FSDP)",                         \
      "0, with `fused` execution over data ranks 1 (the recipes' distributed optimizer; a named `stack` keeps its "    \
      "own); 1: optimizer states, 2: gradients too, 3: parameters too (FSDP) sharded over the data ranks")             \
    FLAG(SP, "sp", SWITCH, 0, 0, NO_WORDS, 0, "sp", 0, NULL, STEPS,                                                    \
      "sequence parallel: norms and residuals split over the tensor ranks",                                            \
      "false; true: norms and residuals split over the tensor ranks")                                                  \
    FLAG(SCHEDULE, "schedule", WORD, 0, 0, WORDS(schedule), DEPENDS, "schedule", 0, NULL, STEPS,                       \
      "order of micro-batches in the pipeline [1f1b; interleaved with --vpp]",                                         \
      "`1f1b`, or with `vpp` `interleaved`; `gpipe`, `zero_bubble`, `dualpipe`; `v_zero_bubble`, `v_half`, `v_min` "   \
      "(two chunks per stage, in a V; the last two keep a half and a third of the activations)")                       \
    FLAG(OVERLAP, "overlap", SWITCH, 0, 0, NO_WORDS, DEPENDS, "overlap", 0, NULL, STEPS,                               \
      "exchange gradients during the backward pass (the default)",                                                     \
      "left out: as the [stack](stacks.md) does; true: gradients are exchanged during the backward pass; false with "  \
      "`megatron`, in pipelines of `megatron_2021` and [of FSDP](models/layout.md#memory-of-a-rank)")                  \
    FLAG(TP_OVERLAP, "tp_overlap", SWITCH, 0, 0, NO_WORDS, DEPENDS, "tp-overlap", 0, NULL, STEPS,                      \
      "with --sp, tensor-parallel exchanges run in pieces during the matrix products [fused in fp8, fp4]",             \
      "true with `sp` in fp8 and fp4 under `fused` execution, else false: a tensor rank's gathers and scatters run in "\
      "pieces, overlapped with the products that read and write them (Transformer Engine's user buffers, AsyncTP)")    \
    FLAG(DEAL, "deal", WORD, 0, 0, WORDS(deal), 0, "deal", 0, NULL, STEPS,                                             \
      "layers that --pp does not divide: one more in some stages (refused with --vpp), or the rest in the last",       \
      "`even`: layers divide as above, and where `pp` alone does not divide them, some stages have one more; `rest`: " \
      "the last chunk takes what remains (DeepSeek-V3's 61 over 16: 4 each, 1 with the head)")                         \
    FLAG(CP_KIND, "cp_kind", WORD, 0, 0, WORDS(context), 0, "cp-kind", 0, NULL, STEPS,                                 \
      "how --cp brings keys and values to the queries",                                                                \
      "`ring`: keys and values go round the ranks while attention runs (Megatron's `p2p`); `ulysses`: all-to-all of "  \
      "heads (`a2a`); `gather`: keys and values are gathered first (`all_gather`, Llama 3); `pytorch`: [as PyTorch's " \
      "own context parallelism does it](models/layout.md#context-parallelism), which torchtitan and Accelerate run")   \
    FLAG(ULYSSES, "ulysses", SWITCH, 0, 0, NO_WORDS, DEPENDS, "ulysses", 0, NULL, STEPS,                               \
      "--cp-kind ulysses: all-to-all of heads instead of a ring of keys and values",                                   \
      "false; true is `cp_kind` `ulysses`")                                                                            \
    FLAG(GATHER, "gather", WORD, 0, 0, WORDS(gather), DEPENDS, "gather", 0, NULL, STEPS,                               \
      "--zero 3 gathers a layer ahead (FSDP), or tensor by tensor (DeepSpeed in 2021: the stack megatron_2021)",       \
      "`layer`: ZeRO-3 gathers a layer's parameters at once, while the layer before it runs (FSDP); `parameter`: "     \
      "tensor by tensor, and the GPU waits (DeepSpeed in 2021), the default of the stack `megatron_2021` "             \
      "([why](models/layout.md#zero-3-of-2021))")                                                                      \
    FLAG(SHARD, "shard", WHOLE, 1, 1000000, NO_WORDS, DEPENDS, "shard", 0, "N", STEPS,                                 \
      "hybrid sharding: data ranks that share one copy of the states [all]",                                           \
      "all data ranks share one copy of the sharded states; or this many of them do (hybrid sharding)")                \
    FLAG(RESHARD, "reshard", SWITCH, 0, 0, NO_WORDS, DEPENDS, "reshard", 0, NULL, STEPS,                               \
      "--zero 3 drops gathered parameters after the forward pass (the default except in FSDP's pipelines)",            \
      "true: ZeRO-3 drops gathered parameters after the forward pass and gathers them again; false (PyTorch's "        \
      "SHARD_GRAD_OP, `reshard_after_forward=False`, which its users call ZeRO-2), and FSDP in a pipeline: keeps them "\
      "for all micro-batches")                                                                                         \
    FLAG(GATHER_OVERLAP, "gather_overlap", SWITCH, 0, 0, NO_WORDS, 0, "gather-overlap", 0, NULL, STEPS,                \
      "--zero 1 and 2 gather updated parameters during the next forward pass",                                         \
      "false; true: ZeRO-1 and 2 gather updated parameters during the next forward pass")                              \
    FLAG(OVERLAP_P2P, "overlap_p2p", SWITCH, 0, 0, NO_WORDS, DEPENDS, "overlap-p2p", 0, NULL, STEPS,                   \
      "an interleaved pipeline's transfers overlap with compute (the default except for megatron_2021)",               \
      "true: an interleaved schedule's transfers overlap with compute; false, and with `megatron_2021`: every stage "  \
      "waits for them")                                                                                                \
    FLAG(EXPERT_DISPATCH, "expert_dispatch", WORD, 0, 0, WORDS(dispatch), 0, "expert-dispatch", 0, NULL, STEPS,        \
      "a token is sent to each of its experts, or once to a rank and a node that has several (DeepEP)",                \
      "`copies`: a token is sent to every expert it picked; `once`: once to a rank, and to a node, that has several "  \
      "of them (DeepEP, HybridEP)")                                                                                    \
    FLAG(EXPERT_OVERLAP, "expert_overlap", SWITCH, 0, 0, NO_WORDS, DEPENDS, "expert-overlap", 0, NULL, STEPS,          \
      "token exchanges with experts overlap with another micro-batch's kernels (on with dualpipe)",                    \
      "false, with `dualpipe` true: token exchanges with experts overlap with another micro-batch's kernels "          \
      "(Megatron-Core's `overlap_moe_expert_parallel_comm`); needs `ep`, two micro-batches, and in a pipeline `vpp` "  \
      "or `dualpipe` ([how](models/pipeline.md#exchanges-with-experts))")                                              \
    FLAG(EXPERT_SKEW, "expert_skew", REAL, 1, 1e4, NO_WORDS, 1, "expert-skew", 0, "X", STEPS,                          \
      "load imbalance: tokens of the busiest expert rank over the mean",                                               \
      "1: the busiest expert rank's tokens over the mean")                                                             \
    FLAG(EXPERT_CAPACITY, "expert_capacity", REAL, 1, 1e4, NO_WORDS, DEPENDS, "expert-capacity", 0, "X", STEPS,        \
      "capacity of an expert rank over the mean; tokens beyond it are dropped",                                        \
      "capacity of an expert rank over the mean; tokens beyond it are dropped")                                        \
    FLAG(BUCKET, "bucket_mib", REAL, 0.001, 1e6, NO_WORDS, DEPENDS, "bucket-mib", 0, "X", STEPS,                       \
      "size of a gradient bucket [25; fused as Megatron's]", "25: size of a gradient bucket")                          \
    FLAG(REDUCE_DTYPE, "reduce_dtype", WORD, 0, 0, WORDS(wire), DEPENDS, "reduce-dtype", 0, NULL, STEPS,               \
      "number format of exchanged gradients [their own]",                                                              \
      "`fp32`, `bf16`, `fp16`, `fp8`: number format of exchanged gradients; left out: their own, and with `fused` "    \
      "execution the one Megatron keeps them in: fp32 in bf16, 16 bits in fp16, fp8 and fp4 ([who says "               \
      "so](models/layout.md#gradients-parameters-states))")                                                            \
    FLAG(GATHER_DTYPE, "gather_dtype", WORD, 0, 0, WORDS(wire), DEPENDS, "gather-dtype", 0, NULL, STEPS,               \
      "number format of exchanged parameters [their own]",                                                             \
      "`fp32`, `bf16`, `fp16`, `fp8`: number format of exchanged parameters; left out: their own")

/* Read by comm/cluster.c, which also reads them from a cluster file. */
#define FT_CLUSTER_KEYS(FLAG, PLAIN)                                                                                   \
    FLAG(NODES, "nodes", WHOLE, 1, 1000000, NO_WORDS, DEPENDS, "nodes", 0, "N", STEPS | INFER | SERVE | EXCHANGE,      \
      "nodes [as many as the GPUs need]", "as many as the ranks need; fewer are refused")                              \
    FLAG(GPUS_PER_NODE, "gpus_per_node", WHOLE, 1, 4096, NO_WORDS, DEPENDS, "gpus-per-node", 0, "N",                   \
      STEPS | INFER | SERVE | EXCHANGE,                                                                                \
      "GPUs in a node [as usual for the GPU]", "the GPU's usual node")                                                 \
    FLAG(INTERCONNECT, "interconnect", TEXT, 0, 0, NO_WORDS, DEPENDS, "interconnect", 0, "TEXT",                       \
      STEPS | INFER | SERVE | EXCHANGE,                                                                                \
      "a server or fabric by name (ib_ndr400), a file, or in words: \"8x200 Gbps HDR/node\"",                          \
      "the network usual for the GPU; a server or a fabric by name (`dgx_h100`, `ib_ndr400`), a cluster file, or in "  \
      "words: `\"8x200 Gbps HDR InfiniBand/node\"`, [below](#a-network-in-words)")                                     \
    FLAG(TOPOLOGY, "topology", TEXT, 0, 0, NO_WORDS, DEPENDS, "topology", 0, "NAME", STEPS | INFER | SERVE | EXCHANGE, \
      "of the network: rails, fat_tree, dragonfly; \"fat_tree 2:1\" where it is oversubscribed",                       \
      "`rails` or `fat_tree`, as usual for the server; `dragonfly` is read as a fat tree; `\"fat_tree 2:1\"` where "   \
      "it is oversubscribed")                                                                                          \
    FLAG(OVERSUBSCRIPTION, "oversubscription", REAL, 1, 1000, NO_WORDS, 1, "oversubscription", 0, "X",                 \
      STEPS | INFER | EXCHANGE,                                                                                        \
      "oversubscription: how much less bandwidth the upper switches have",                                             \
      "1: oversubscription: how much less bandwidth the upper switches have, where the network is simulated")          \
    FLAG(LEAF_NODES, "leaf_nodes", WHOLE, 1, 1000000, NO_WORDS, DEPENDS, "leaf-nodes", 0, "N",                         \
      STEPS | INFER | EXCHANGE,                                                                                        \
      "nodes under one leaf switch", "nodes under one leaf switch, where the network is simulated")                    \
    FLAG(NCCL, "nccl", TEXT, 0, 0, NO_WORDS, DEPENDS, "nccl", 0, "VERSION", STEPS | INFER | EXCHANGE,                  \
      "the version of NCCL, \"2.23\" [a recent one]",                                                                  \
      "a recent one; `\"2.23\"`: the version of NCCL, which matters inside a node before 2.26 "                        \
      "([collectives](models/collective.md))")                                                                         \
    FLAG(NETWORK, "network", WORD, 0, 0, WORDS(network), 0, "network", 0, NULL, TRAIN | EXCHANGE,                      \
      "exchanges between nodes by formula, or as flows in a simulated fat tree",                                       \
      "`closed`: exchanges between nodes by formula; `simgrid`: as flows in a simulated fat tree ([the "               \
      "network](models/network.md)), listed under the answer's `network`. Through the program alone: the library "     \
      "refuses it")                                                                                                    \
    PLAIN(TIERS, "tiers", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                                            \
      "the cluster level by level instead ([collectives](models/collective.md))")

#define FT_LOADER_KEYS(FLAG, PLAIN)                                                                                    \
    FLAG(DISK_RATE, "samples_per_s_disk", REAL, 1e-6, 1e12, NO_WORDS, DEPENDS, "samples-per-s-disk", 0, "X", TRAIN,    \
      "samples per second that storage delivers to one GPU", "samples per second that storage delivers to one GPU")    \
    FLAG(DISK_GBPS, "disk_gbps", REAL, 1e-6, 1e6, NO_WORDS, DEPENDS, "disk-gbps", 0, "X", TRAIN,                       \
      "storage bandwidth for sequential reads, GB/s",                                                                  \
      "bandwidth of the storage for sequential reads, GB/s; together with `sample_bytes` it gives samples per second") \
    FLAG(SAMPLE_BYTES, "sample_bytes", REAL, 1, 1e12, NO_WORDS, DEPENDS, "sample-bytes", 0, "N", TRAIN,                \
      "size of one sample on its way to the GPU", "one sample on its way to the GPU")                                  \
    FLAG(WORKERS, "workers", WHOLE, 0, 4096, NO_WORDS, 0, "workers", 0, "N", TRAIN,                                    \
      "loader processes; 0: the training process itself", "0: loader processes; 0: the training process itself")       \
    FLAG(WORKER_MS, "worker_ms", REAL, 0, 1e7, NO_WORDS, DEPENDS, "worker-ms", 0, "X", TRAIN,                          \
      "time a worker takes for one sample", "a worker's time for one sample")                                          \
    FLAG(PINNED, "pinned", SWITCH, 0, 0, NO_WORDS, 0, "pinned", 0, NULL, TRAIN,                                        \
      "batches are in pinned memory and copied during the step",                                                       \
      "false; true: batches are in pinned memory and copied during the step")
#endif
