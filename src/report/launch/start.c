/* start.c: what starts the processes: torchrun on every node, a Slurm script, Open MPI. What each process runs stands
 * in TRAIN, which the framework's own file fills. */
#include <inttypes.h>

#include "report/launch/launch.h"

static void torchrun(ft_text *out, const ft_launch *l, const char *head)
{
    ft__text_addf(out, "torchrun --nnodes=%" PRId64 " --nproc-per-node=%" PRId64, l->nodes, l->gpus_per_node);
    if (l->nodes > 1)
        ft__text_addf(out, " --rdzv-backend=c10d --rdzv-id=plan --rdzv-endpoint=%s:29500", head);
    else
        ft__text_add(out, " --standalone");
    ft__text_addf(out, " %s\n", l->search->framework->runs);
}

void ft__launch_torchrun(ft_text *out, const ft_launch *l) { torchrun(out, l, "$HEAD_NODE"); }

void ft__launch_srun(ft_text *out, const ft_launch *l)
{
    ft__text_addf(out,
                  "#!/bin/bash\n"
                  "#SBATCH --nodes=%" PRId64 "\n"
                  "#SBATCH --ntasks-per-node=1\n"
                  "#SBATCH --gpus-per-node=%" PRId64 "\n"
                  "#SBATCH --exclusive\n\n",
                  l->nodes, l->gpus_per_node);
    ft__text_add(out, "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nsrun ");
    torchrun(out, l, "$HEAD_NODE");
}

void ft__launch_mpirun(ft_text *out, const ft_launch *l)
{
    ft__text_addf(out,
                  "mpirun -np %" PRId64 " --map-by ppr:%" PRId64 ":node -x MASTER_ADDR -x MASTER_PORT python3 %s\n",
                  l->search->asked->gpus, l->gpus_per_node, l->search->framework->runs);
}
