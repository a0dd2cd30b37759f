/* One rank's graph while it is written: the state, and what data ranks exchange (chakra_data.c). */
#ifndef FT_REPORT_TRACE_CHAKRA_RANK_H
#define FT_REPORT_TRACE_CHAKRA_RANK_H
#include "ranks/lanes.h"
#include "report/trace/chakra_file.h"
#include "report/trace/chakra_groups.h"
#include "study/step_view.h"

typedef struct ranker {
    const ft_step_view *v;
    ft_chakra_file file;
    const ft_timed ***timed; /* by stage, by node */
    int64_t rank, stage;     /* whose file it is */
    int64_t stages, micros, parts;
    bool merged;
    bool gathers;   /* sharded parameters, in the pass that is being written */
    double share;   /* of its kernels' time: 1, or what is left when weights' gradients wait */
    int64_t kernel; /* the last one's id */
    int64_t lane[FT_AXIS_COUNT];
    int64_t *made;       /* by node: id of its exchange */
    int32_t *last;       /* by chunk: its last piece that makes gradients */
    ft_chakra_node open; /* kernels being merged */
    bool is_open;
} ranker;

const ft_parallel *ft__chakra_layout(const ft_step_view *v);

/* An exchange behind the last kernel (chakra.c); its id. `set`: an ft_axis, or what hybrid sharding makes of the data
 * ranks. */
int64_t ft__chakra_exchange(ranker *r, const char *name, ft_exchange_kind kind, int set, double bytes, double ms,
                            int64_t awaits);

/* Parameters or gradients among data ranks. */
int64_t ft__chakra_data(ranker *r, const char *name, ft_exchange_kind kind, double bytes, double ms);
double ft__chakra_gradient_bytes(const ft_step_view *v); /* of an element */
/* One iteration's parameters, and its gradients. */
void ft__chakra_gather(ranker *r, const ft_graph *g, const ft_lanes *l, int32_t b);
void ft__chakra_reduce(ranker *r, const ft_graph *g, const ft_lanes *l, int32_t b);
/* Where tensors travel one by one (DeepSpeed's lists): what a node waits for, or sends on, takes its part of the
 * block's bytes by time; `all`: the block's (ft__chakra_block_ms). */
void ft__chakra_of_tensor(ranker *r, const ft_graph *g, int32_t b, bool gathers, double ms, double all);
double ft__chakra_block_ms(const ft_graph *g, const ft_lanes *l, int32_t b, bool gathers);
static inline double fetched_ms(const ft_sharded *s) { return s->fetch + s->ahead; }
static inline double reduced_ms(const ft_reducing *r) { return r->exchange > 0 ? r->list + r->exchange : 0; }
#endif
