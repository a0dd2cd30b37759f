/* What a request says and a launch file has no word for. */
#ifndef FT_REPORT_LAUNCH_UNSAID_H
#define FT_REPORT_LAUNCH_UNSAID_H
#include "report/launch/launch.h"

/* The value of a key as the request has it, at the top, in "parallel" or in "lora"; NULL: it says nothing of it. */
const json_t *ft__launch_said(const ft_launch *l, ft_key_id key);
/* Of this file, "its loss; DoRA"; nothing where it says all that was asked for. */
void ft__launch_unsaid(ft_text *out, const ft_launch *l, const char *file);
/* The same as a line of the file itself, "# torchtitan has no setting for: its loss". */
void ft__launch_remark(ft_text *out, const ft_launch *l, const char *file, const char *who);
/* A line for each of the plan's launch files, for the answer's warnings. */
void ft__launch_warnings(ft_text *lines, const ft_plan *p);
/* Layers with adapters by Megatron-Core's names, each in quotes, where the request has them so; false: it does not. */
bool ft__launch_targets(ft_text *out, const ft_launch *l, const char *quote);
#endif
