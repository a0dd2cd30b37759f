/* What starts a plan: flags, configuration files and command lines of the software that runs it. */
#ifndef FT_REPORT_LAUNCH_LAUNCH_H
#define FT_REPORT_LAUNCH_LAUNCH_H
#include "base/text.h"
#include "search/plan.h"

/* One plan of a search: what the writers read. */
typedef struct ft_launch {
    const ft_search *search;
    const ft_candidate *plan;
    int64_t nodes, gpus_per_node;
} ft_launch;

typedef struct ft_launcher {
    const char *name;  /* "megatron" */
    const char *title; /* what it writes: "flags of Megatron-LM's pretrain_gpt.py" */
    bool anybody;      /* starts plans of every framework; else of those that name it */
    void (*write)(ft_text *out, const ft_launch *l);
} ft_launcher;

/* FT_E_NAME with the nearest where there is none; FT_E_RANGE where it is another framework's. */
ft_status ft__launcher_find(const char *name, const ft_framework *framework, const ft_launcher **out, ft_error *err);
/* Everything that a request asks for, before its search begins. */
ft_status ft__launch_check(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_error *err);
/* What a request names, in its order; of "all" every file that starts such a plan. Their number. */
size_t ft__launch_files(const ft_plan *p, const ft_launcher *out[FT_PLAN_MOST_EMITTED]);
ft_launch ft__launch_of(const ft_plan *p, const ft_candidate *plan);

/* The modules that run again, each in quotes; nothing where they are not named, which is attention's scores. */
void ft__launch_modules(ft_text *out, const ft_launch *l, const char *quote, const char *between);

/* Who captures CUDA graphs, in Megatron-Core's words: NULL where nobody does. The modules that they are of, each in
 * quotes; nothing where layers are captured whole, or all of a step. */
const char *ft__launch_graphs(const ft_launch *l);
void ft__launch_graphed(ft_text *out, const ft_launch *l, const char *quote, const char *between);

/* Layers whose activations leave for the host: as named, or all but two at either end. */
int64_t ft__offloaded_layers(const ft_launch *l);

/* Whether what this file of the framework's starts trains such a model: of those that are for decoders, decoders whose
 * layers are attention and a network. */
bool ft__launches(const ft_framework *f, const char *file, const ft_arch *a);

/* Layers of every place of a pipeline in Megatron-Core's letters, where its own ways to deal do not give them
 * (pipeline_parallel_layer_layout.py): "Et*2|t*2|tL". Nothing where they do. */
void ft__pipeline_letters(ft_text *out, const ft_launch *l);

/* How context ranks exchange, in Megatron-Core's words. */
const char *ft__cp_comm_type(const ft_parallel *p);

/* The writers. */
void ft__launch_megatron(ft_text *out, const ft_launch *l);
void ft__launch_bridge(ft_text *out, const ft_launch *l);
void ft__launch_nemo(ft_text *out, const ft_launch *l);
void ft__launch_torchtitan(ft_text *out, const ft_launch *l);
void ft__launch_deepspeed(ft_text *out, const ft_launch *l);
void ft__launch_accelerate(ft_text *out, const ft_launch *l);
void ft__launch_torchrun(ft_text *out, const ft_launch *l);
void ft__launch_srun(ft_text *out, const ft_launch *l);
void ft__launch_mpirun(ft_text *out, const ft_launch *l);
#endif
