/* What starts a plan for serving: command lines of vLLM, SGLang and TensorRT-LLM. */
#ifndef FT_REPORT_LAUNCH_ENGINES_H
#define FT_REPORT_LAUNCH_ENGINES_H
#include "base/text.h"
#include "fleet/fleet.h"

/* Every name of a request is one that the plan's engine is started by. */
ft_status ft__engine_launch_check(const ft_plan_request *r, ft_error *err);
/* The engine's command lines, one per engine of a kind; `name`: "vllm", "sglang", "trtllm". False: no such name. */
bool ft__engine_launch(ft_text *out, const char *name, const ft_fleet *f, const ft_way *w);
/* A model that drafts, by its name; NULL: none, or one that a shell would read otherwise. */
const char *ft__engine_drafter(const json_t *said);
/* What of the request that engine has no flag for, "adapters; ..."; and the same as lines for the answer's warnings. */
void ft__engine_unsaid(ft_text *out, const char *name, const ft_fleet *f);
void ft__engine_warnings(ft_text *lines, const ft_fleet *f);
#endif
