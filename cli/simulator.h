/* The network simulator as a child process: foretell-simgrid, beside the program or where it was installed. */
#ifndef CLI_SIMULATOR_H
#define CLI_SIMULATOR_H
#include "comm/simgrid.h"

extern const ft_simulator cli_simulator;
#endif
