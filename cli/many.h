/* What `train` and `plan` write beside their screens: traces, rank groups, the simulated network. */
#ifndef CLI_MANY_H
#define CLI_MANY_H
#include "options.h"
#include "report/text/style.h"
#include "study/step_view.h"

/* --trace and --chakra. 0, or the exit status after complaining. */
int cli_many_files(const cli_args *args, const ft_step_view *v);
/* --groups, and where --network simgrid ran what it found; after the screen. False: out of memory. */
bool cli_many_screen(const cli_args *args, ft_text *out, const ft_style *style, const ft_step_view *v);
/* Rank groups as a key of the answer, before its closing brace; the same where --groups asks for it. */
void cli_add_groups(ft_text *out, const ft_parallel *p);
void cli_many_answer(const cli_args *args, ft_text *out, const ft_step_view *v);
#endif
