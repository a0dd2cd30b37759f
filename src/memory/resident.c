/* resident.c: contexts and workspaces by GPU. */
#include "memory/resident.h"

#include <string.h>

#include "device/traits.h"

#define MIB 1048576.0

/* The driver keeps stacks and queues for every SM and the kernels that were loaded. Seen with nvidia-smi: 320 MiB for a
 * bare context on a Titan V of 80 SMs (pytorch/pytorch#28394), 426 MiB after the first call of PyTorch 2.10 on an RTX
 * 6000 Ada of 142 (unslothai/unsloth-zoo#1053); kernels come lazily since CUDA 11.7 and add up to some 100 MiB over a
 * model's operators (pytorch/pytorch#107667 has 300 to 400 MiB for small parts). */
double ft__context_bytes(const ft_device *device)
{
    static const double BARE = 190 * MIB, EACH_SM = 1.65 * MIB, KERNELS = 100 * MIB;
    return BARE + EACH_SM * device->sms + KERNELS;
}

/* What cudaMemGetInfo gives as the total: 150.11e9 of an H200's 141 GiB, 84.99e9 of an A100's 80, 50.87e9 of an RTX
 * 6000 Ada's 48 are 0.8 to 1.3 % less than the name says. Error correction in GDDR, on by default in parts for servers,
 * takes another sixteenth: a T4 of 16 GiB has 14.75, an L4 of 24 has 22.5. HBM has its own bits for it. */
double ft__device_capacity(const ft_device *device)
{
    static const double USABLE = 0.99, CORRECTED = 1 - 1.0 / 16;
    double bytes = device->memory_gib * 1024 * MIB;
    if (device->vendor != FT_NVIDIA) return bytes;
    return bytes * (device->inline_ecc ? CORRECTED : 1) * USABLE;
}

/* PyTorch gives each handle of the BLAS a workspace (parseChosenWorkspaceSize in ATen/cuda/CublasHandlePool.cpp): 32
 * MiB from Hopper on, 8 MiB and 128 KiB before; with ROCm 32 MiB, 128 MiB on gfx94x and gfx95x. Autograd's thread has a
 * handle of its own, so that training holds two. Measured on an H200: 64.0 MiB in training, 32.0 in inference. */
double ft__library_workspace(const ft_device *device, bool training)
{
    double one = 8.125 * MIB;
    if (device->vendor == FT_AMD)
        one = !strncmp(device->compute_capability, "gfx94", 5) || !strncmp(device->compute_capability, "gfx95", 5)
                  ? 128 * MIB
                  : 32 * MIB;
    else if (ft__compute_major(device) >= 9)
        one = 32 * MIB;
    return training ? 2 * one : one;
}
