/* One collective over one group of ranks -> time with an interval. */
#ifndef FT_COMM_COLLECTIVE_H
#define FT_COMM_COLLECTIVE_H
#include "comm/cluster.h"
#include "kernel/predictor.h"

const char *ft__collective_name(ft_collective c);

/* Ranks first, first + stride, ... : the shape of every group of a Megatron-style layout. */
typedef struct ft_group {
    int64_t size, stride;
    double skew;      /* all-to-all: heaviest rank's share over the mean; 0 or 1: even */
    ft_engine engine; /* all-reduce inside a node: a serving engine's own kernel instead of NCCL */
    int narrow;       /* 1: numbers of one byte are exchanged, fp8 or int8; 0: wider ones; -1: not said */
    bool in_step;     /* part of a step: of a box of slots that was measured nobody says that it is the user's */
} ft_group;

typedef struct ft_comm {
    double ms, low_ms, high_ms;
    double wire_bytes;     /* that one rank sends over the slowest tier it crosses */
    double latency_ms;     /* what is not the wires': starts, steps, hops, filling a pipeline */
    int tier;              /* that bounds it */
    bool slots;            /* some of it goes through slots of PCIe, whatever bounds it */
    const char *algorithm; /* "ring", "tree", "nvls", "hierarchical", "pairwise" */
    const char *protocol;  /* "LL", "LL128", "Simple"; "" */
    double gpu_share;      /* of the SMs (or bandwidth) that it takes from kernels running beside it */
    ft_source source;
} ft_comm;

/* `bytes` as nccl-tests counts them: the whole buffer (all_gather: the result; reduce_scatter: the input). */
ft_status ft__collective_forecast(const ft_predictor *p, const ft_device *device, const ft_cluster *cluster,
                                  ft_collective op, double bytes, const ft_group *group, double quantile, ft_comm *out,
                                  ft_error *err);
#endif
