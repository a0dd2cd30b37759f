/* Which of an engine's backends runs a mixture of experts. */
#ifndef FT_KERNEL_MOE_BACKEND_H
#define FT_KERNEL_MOE_BACKEND_H
#include "foretell.h"

/* The backend said, or what the engine picks for the format on this device. */
ft_moe_backend ft__moe_backend(const ft_device *device, const ft_op *op);
const char *ft__moe_backend_name(ft_moe_backend backend);
/* Whether it has programs for the device's matrix units. */
bool ft__moe_backend_runs(const ft_device *device, ft_moe_backend backend);
#endif
