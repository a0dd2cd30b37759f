/* names.c: what tables of measurements call a GPU (data/constants/fit/names.json). */
#include <string.h>

#include "fit/fit.h"
#include "fit/measurements.h"
#include "fit/names_constants.h"

static const char own[] = "own";

const char *ft__their_gpu(const char *table, const char *theirs)
{
    for (int i = 0; i < FT_K_NAMES_GPUS_COUNT; i++)
        if (!strcmp(ft__k_names_gpus[i].table, table) && !strcmp(ft__k_names_gpus[i].theirs, theirs))
            return ft__k_names_gpus[i].ours;
    return NULL;
}

const char *ft__own_folder(int index, const char **gpu)
{
    for (int i = 0; i < FT_K_NAMES_GPUS_COUNT; i++) {
        if (strcmp(ft__k_names_gpus[i].table, own) != 0 || index-- > 0) continue;
        *gpu = ft__k_names_gpus[i].ours;
        return ft__k_names_gpus[i].theirs;
    }
    return NULL;
}

const char *ft__measured_gpu(void)
{
    const char *gpu = "";
    ft__own_folder(0, &gpu);
    return gpu;
}
