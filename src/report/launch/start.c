/* start.c: what starts the processes: torchrun on every node, a Slurm script, Open MPI. What each process runs stands
 * in the framework's `runs`; where that ends in a variable ("pretrain_gpt.py $MEGATRON_FLAGS"), the Slurm script sets
 * it to the flags of the framework's own file, so that it starts as it stands. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/launch/launch.h"

/* Whether the host's cores update the states: torchrun gives every process one thread unless told otherwise
 * (pytorch/pytorch, torch/distributed/run.py), and others let all processes of a node have all cores. */
static bool updates_on_host(const ft_launch *l)
{
    return l->plan->layout.offload &
           (1u << FT_OFFLOAD_OPTIMIZER | 1u << FT_OFFLOAD_OPTIMIZER_NVME | 1u << FT_OFFLOAD_PARAMETERS);
}

/* The first of the framework's own files, whose flags `runs` takes. */
static void first_file(const ft_framework *f, char name[static 32])
{
    snprintf(name, 32, "%.*s", (int)strcspn(f->files + 1, " "), f->files + 1);
}

/* What each process runs: the framework's program, or the user's where that trains no such model. */
static const char *program(const ft_launch *l)
{
    const ft_framework *f = l->search->framework;
    char first[32];
    first_file(f, first);
    return ft__launches(f, first, l->search->request.arch) ? f->runs : "$PROGRAM";
}

/* GPUs of the last node, where there are fewer than on the others: 12 on nodes of eight; else 0. */
static int64_t rest(const ft_launch *l) { return l->search->asked->gpus % l->gpus_per_node; }

/* Of an uneven job under Slurm every node says by its number how many processes it has. */
static void torchrun(ft_text *out, const ft_launch *l, const char *head, bool by_number)
{
    ft__text_addf(out, "torchrun --nnodes=%" PRId64 " --nproc-per-node=", l->nodes);
    if (by_number && rest(l))
        ft__text_addf(out, "$((SLURM_NODEID < %" PRId64 " ? %" PRId64 " : %" PRId64 "))", l->nodes - 1,
                      l->gpus_per_node, rest(l));
    else
        ft__text_addf(out, "%" PRId64, l->gpus_per_node);
    if (l->nodes > 1)
        ft__text_addf(out, " --rdzv-backend=c10d --rdzv-id=plan --rdzv-endpoint=%s:29500", head);
    else
        ft__text_add(out, " --standalone");
    ft__text_addf(out, " %s", program(l));
}

/* The allocator's, for every process. */
static const char segments[] = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

void ft__launch_torchrun(ft_text *out, const ft_launch *l)
{
    if (rest(l)) ft__text_addf(out, "# on the last node --nproc-per-node=%" PRId64 "\n", rest(l));
    if (updates_on_host(l)) ft__text_addf(out, "OMP_NUM_THREADS=$(($(nproc) / %" PRId64 ")) ", l->gpus_per_node);
    if (l->search->request.work.expandable_segments) ft__text_addf(out, "%s ", segments);
    torchrun(out, l, "$HEAD_NODE", false);
    ft__text_add(out, "\n");
}

/* `NAME="` the flags of the framework's first file `"`, a line each, where what it runs ends in `$NAME`. */
static void flags_of_its_own(ft_text *out, const ft_launch *l)
{
    const ft_framework *f = l->search->framework;
    const char *name = strchr(f->runs, '$');
    const ft_launcher *by;
    char first[32];
    ft_error ignored;
    ft_text flags = {0};
    first_file(f, first);
    if (!name || !ft__launches(f, first, l->search->request.arch)) return;
    if (ft__launcher_find(first, f, &by, &ignored) != FT_OK) return;
    by->write(&flags, l);
    const char *at = flags.at; /* remarks stay in front of the flags; the program's own line is in `runs` */
    for (; at && *at == '#'; at = strchr(at, '\n') + 1) ft__text_add_n(out, at, strcspn(at, "\n") + 1);
    at = at ? strchr(at, '\n') : NULL;
    ft__text_addf(out, "%s=\"", name + 1);
    for (; at && *at; at++)
        if (*at != '\\' && *at != '\'' && (*at != ' ' || at[1] != '\\') && (*at != '\n' || at[1]))
            ft__text_addf(out, "%c", *at);
    ft__text_add(out, "\"\n");
    ft__text_drop(&flags, out);
}

void ft__launch_srun(ft_text *out, const ft_launch *l)
{
    ft__text_addf(out,
                  "#!/bin/bash\n"
                  "#SBATCH --nodes=%" PRId64 "\n"
                  "#SBATCH --ntasks-per-node=1\n"
                  "#SBATCH --gpus-per-node=%" PRId64 "\n"
                  "#SBATCH --exclusive\n\n",
                  l->nodes, l->gpus_per_node);
    flags_of_its_own(out, l);
    if (updates_on_host(l))
        ft__text_addf(out, "export OMP_NUM_THREADS=$((SLURM_CPUS_ON_NODE / %" PRId64 "))\n", l->gpus_per_node);
    if (l->search->request.work.expandable_segments) ft__text_addf(out, "export %s\n", segments);
    ft__text_add(out, "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n");
    const char *flags = strchr(program(l), '$');
    if (rest(l)) ft__text_addf(out, "export HEAD_NODE %s\n", flags ? flags + 1 : "");
    ft__text_add(out, rest(l) ? "srun bash -c '" : "srun ");
    torchrun(out, l, "$HEAD_NODE", true);
    ft__text_add(out, rest(l) ? "'\n" : "\n");
}

/* torch's env:// rendezvous asks for RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, programs for LOCAL_RANK (and
 * LOCAL_WORLD_SIZE): torchrun sets them, Open MPI says the same by names of its own. */
void ft__launch_mpirun(ft_text *out, const ft_launch *l)
{
    ft__text_addf(out, "mpirun -np %" PRId64 " --map-by ppr:%" PRId64 ":node -x MASTER_ADDR=%s -x MASTER_PORT=29500",
                  l->search->asked->gpus, l->gpus_per_node, l->nodes > 1 ? "$HEAD_NODE" : "localhost");
    if (updates_on_host(l)) ft__text_addf(out, " -x OMP_NUM_THREADS=$(($(nproc) / %" PRId64 "))", l->gpus_per_node);
    if (l->search->request.work.expandable_segments) ft__text_addf(out, " -x %s", segments);
    ft__text_addf(out,
                  " bash -c 'RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE "
                  "LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE exec \"$@\"' "
                  "bash python3 %s\n",
                  program(l));
}
