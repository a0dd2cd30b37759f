/* Behind ft_context: what all threads share, what one keeps between requests, and the questions about one step. */
#ifndef FT_STUDY_CONTEXT_H
#define FT_STUDY_CONTEXT_H
#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/simgrid.h"
#include "kernel/host.h"
#include "kernel/predictor.h"
#include "request/collective.h"
#include "request/model.h"
#include "request/request.h"
#include "request/trace.h"
#include "study/model_sheet.h"
#include "study/step_view.h"

/* One thread's memory: the devices, hosts, stacks and models that requests spelled out, the kernels it has forecast,
 * and the room in which a step's graph is built. Zero it before the first use; a file that changes while it is
 * remembered is not read again. */
enum { FT_REMEMBERED_DEVICES = 4, FT_REMEMBERED_MODELS = 16, FT_REMEMBERED_HOSTS = 4, FT_REMEMBERED_STACKS = 4 };
typedef struct ft_scratch {
    json_t *spec[FT_REMEMBERED_DEVICES];
    ft_device device[FT_REMEMBERED_DEVICES];
    ft_text warnings[FT_REMEMBERED_DEVICES]; /* of the specs' checks, one per line */
    unsigned next;
    json_t *model[FT_REMEMBERED_MODELS]; /* the request's value of "model" */
    char read_as[FT_REMEMBERED_MODELS][40];
    ft_picture_size size[FT_REMEMBERED_MODELS];
    ft_arch *arch[FT_REMEMBERED_MODELS]; /* each by itself: ten KiB that most requests for one kernel never touch */
    unsigned next_model;
    json_t *host_spec[FT_REMEMBERED_HOSTS]; /* the request's value of "host", but for names */
    ft_host host[FT_REMEMBERED_HOSTS];
    unsigned next_host;
    json_t *stack[FT_REMEMBERED_STACKS]; /* the request's value of "stack", where it is not a name */
    ft_stack own_stack[FT_REMEMBERED_STACKS];
    unsigned next_stack;
    ft_memo *memo;
    ft_arena *arena;               /* of the last step; emptied by the next */
    ft_arena *trials;              /* of other workloads, when the one asked for does not fit */
    ft_text remarks;               /* warnings of the last step */
    const ft_simulator *simulator; /* who runs "network": "simgrid"; NULL: nobody */
} ft_scratch;
void ft__scratch_free(ft_scratch *s);
/* For one that waits: the last step's results go, and with them all memory beyond what the next may want at once. */
void ft__scratch_rest(ft_scratch *s);

/* One kernel: the request and its device live as long as the document and the scratch. */
ft_status ft__request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_request *out,
                         ft_error *err);
ft_status ft__forecast_of(const ft_context *ft, const ft_request *request, ft_forecast *out, ft_error *err);
/* What it draws when it runs back to back, as long as that takes by then. */
ft_energy ft__energy_of_kernel(const ft_context *ft, const ft_request *request, const ft_forecast *f);

/* Whole models, the same way. What a view points to lives until the next step with the same scratch. */
ft_status ft__model_request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_model_request *out,
                               ft_error *err);
ft_status ft__step_of(const ft_context *ft, ft_scratch *scratch, const ft_model_request *request, ft_step_view *out,
                      ft_error *err);

/* One exchange; a request may be simulated, which fills its cluster. */
ft_status ft__collective_request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object,
                                    ft_collective_request *out, ft_error *err);
ft_status ft__exchange_of(const ft_context *ft, ft_scratch *scratch, ft_collective_request *r, ft_comm *out,
                          ft_error *err);

/* A profiler trace. Free the report with ft__trace_report_free either way. */
ft_status ft__trace_of(const ft_context *ft, ft_scratch *scratch, const ft_trace_request *r, ft_trace_report *out,
                       ft_error *err);

/* What a model is, by a name, a path or its config; its parameters by block too unless `layers` is NULL. They live
 * until the next step with the same scratch, the name as long as the document. */
ft_status ft__model_sheet_of(ft_scratch *scratch, const json_t *model, const char *read_as, ft_model_sheet *out,
                             const ft_layer **layers, size_t *layer_count, ft_error *err);

/* Devices, models, hosts and stacks that requests spelled out, by what they said: the slot of the oldest, emptied; the
 * value of a slot that was filled. */
int ft__recall_slot(json_t **said, int count, unsigned next);
void ft__recall_keep(json_t **said, int slot, const json_t *value, unsigned *next);

/* What request readers call to find devices; `source` is an ft_finder. */
typedef struct ft_finder {
    const ft_context *ft;
    ft_scratch *scratch;
} ft_finder;
ft_status ft__find_device(void *source, const json_t *gpu, const ft_device **out, ft_error *err);
ft_status ft__find_host(ft_scratch *scratch, const json_t *host, const ft_host **out, ft_error *err);
ft_status ft__find_stack(void *source, const json_t *stack, const ft_stack **out, ft_error *err);
const char *ft__device_warnings(const ft_scratch *scratch, const ft_device *device); /* "" for none */
/* The same, then a line of every key that has no effect. */
ft_status ft__idle_warnings(ft_scratch *scratch, const ft_device *device, const ft_idle_list *idle, const char **out,
                            ft_error *err);

double ft__context_quantile(const ft_context *ft);
const ft_predictor *ft__context_predictor(const ft_context *ft);

/* -- the context itself: what the public functions of foretell.h do ------------------------------ */

ft_status ft__context_open(ft_context **out, const ft_options *options, ft_error *err);
void ft__context_close(ft_context *ft);
ft_status ft__context_device(const ft_context *ft, const char *name, ft_device *out, ft_error *err);
size_t ft__context_device_count(const ft_context *ft);
ft_status ft__context_device_at(const ft_context *ft, size_t index, ft_device *out, ft_error *err);
/* `op` has been checked. */
ft_status ft__context_forecast(const ft_context *ft, const ft_device *device, const ft_op *op, double quantile,
                               ft_forecast *out, ft_error *err);
bool ft__forecast_sound(const ft_forecast *f); /* finite, positive, inside its own interval */
#endif
