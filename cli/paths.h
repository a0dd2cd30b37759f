/* Where measurements are, and lists of names checked against what exists. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H
#include "options.h"

/* --data, else $FORETELL_DATA, else what was installed or lies in the source tree around the program. 0, or the exit
 * status after complaining. */
int cli_data_folder(const cli_args *args, char *out, size_t room);

/* --page, else $FORETELL_PAGE, else what `make web` built beside the program or an installation has; "" where there is
 * none. 0, or the exit status after complaining. */
int cli_page_folder(const cli_args *args, char *out, size_t room);

/* Every one of `names` must be a GPU of the catalogue, or a family: the nearest is offered. GPUs are replaced by their
 * names in the catalogue ("H100-SXM" by "h100_sxm"), which is how measurements call them. */
int cli_check_gpus(const char **names, size_t count);
int cli_check_families(const char *const *names, size_t count);
#endif
