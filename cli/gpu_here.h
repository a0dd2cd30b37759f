/* GPUs of this machine, as the driver names them, and which of the catalogue they look like. */
#ifndef CLI_GPU_HERE_H
#define CLI_GPU_HERE_H
#include <stdbool.h>
#include <stddef.h>

enum { CLI_GPUS_HERE = 16, CLI_GPU_ALIKE = 6 };

typedef struct cli_gpu_here {
    char title[96];                   /* "NVIDIA H200" */
    const char *alike[CLI_GPU_ALIKE]; /* names of the catalogue that it may be, all as good; none: count 0 */
    size_t alike_count;
} cli_gpu_here;

/* Kinds, each once; 0 where there is none, or no NVIDIA driver. `proc`: "/proc". */
size_t cli_gpus_here(const char *proc, cli_gpu_here out[CLI_GPUS_HERE]);
#endif
