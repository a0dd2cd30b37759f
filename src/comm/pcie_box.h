/* GPUs in slots: what joins them is the box's, and boxes differ by an order of magnitude. */
#ifndef FT_COMM_PCIE_BOX_H
#define FT_COMM_PCIE_BOX_H
#include "comm/collective.h"

/* The box whose exchanges were measured is this GPU's own. */
bool ft__pcie_box_measured(const ft_device *device);
/* Its cards reach each other through the memory of the host alone. */
bool ft__pcie_by_host(const ft_device *device);
/* `out` comes as the measured box has it, and leaves as a box behind a switch or as one that nobody knows. */
void ft__pcie_box(const ft_device *device, const ft_tier *tier, const ft_group *group, ft_comm *out);
#endif
