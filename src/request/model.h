/* A request for a whole model: one JSON object -> the model, what is done with it, the device. */
#ifndef FT_REQUEST_MODEL_H
#define FT_REQUEST_MODEL_H
#include "model/lengths.h"
#include "model/picture_size.h"
#include "model/stack.h"
#include "request/advice.h"
#include "request/idle.h"
#include "request/parallel.h"
#include "request/positions.h"
#include "request/request.h"
#include "request/words.h"

typedef struct ft_model_request {
    ft_ask ask;             /* train, forward, prefill, decode or memory */
    const ft_arch *arch;    /* lives as long as the scratch remembers it */
    const char *model;      /* as the user calls it: a name or a path; the model_type of a config object */
    const char *dtype_name; /* "amp_bf16" */
    ft_workload work;
    const ft_device *device;
    ft_parallel parallel;
    ft_length_mix lengths; /* of sequences, where they vary */
    int64_t longest;       /* tokens of the longest batch, where `work.seq` stands for many; 0: as `work.seq` */
    int64_t global_batch;  /* as given; 0: left out */
    bool zero_raised;      /* "zero" 0, said or not, and the stack that follows shards in any case */
    bool kv_given;         /* "kv_dtype" stands in the request */
    const json_t *cluster; /* as it stands; NULL: the GPU's usual node */
    const json_t *host;    /* likewise; NULL: the usual one. Who reads it fills work.host */
    double quantile;       /* 0: the context's */
    double tokens;         /* of a whole training run, whose days are asked for; 0: none */
    ft_detail detail;
    ft_loader loader;
    bool advice, techniques;
    bool course;                 /* the step over time is asked for */
    ft_picture_size pictures_of; /* the size that is asked for */
    unsigned pictures;           /* bits by ft_picture: drawings that are asked for */
    bool closed_forms;           /* exchanges by formula, even where the cluster asks for a simulation */
    bool version_turns;          /* the version of PyTorch that is named has no such attention, or no such segments */
    bool packs_examples;         /* the remark says that sequences are packed, as its stack's recipes have them */
    char remark[240];            /* a warning about the request itself; "" for none */
    char beyond[FT_BEYOND_ROOM]; /* sequences are longer than the model has positions; or "" */
    char quantized[160];         /* what became of quantization_config, where it is not what is forecast; or "" */
    char modules[160];           /* what predicts further tokens and is left out; or "" */
    ft_idle_key idle[FT_KEY_COUNT];
    size_t idle_count;
} ft_model_request;

/* Where models come from is the context's affair, as with devices. `read_as` may be NULL; a size of images that is
 * asked for is the model's. */
typedef ft_status (*ft_model_source)(void *source, const json_t *model, const char *read_as, ft_picture_size size,
                                     const ft_arch **out, ft_error *err);

typedef ft_status (*ft_stack_source)(void *source, const json_t *stack, const ft_stack **out, ft_error *err);

/* What a request must be beyond its keys: sizes that can be, a format that the GPU has, a layout that the model
 * takes. */
ft_status ft__model_request_check(const ft_model_request *r, ft_error *err);

/* An operator's complaint about its sizes ("numel") in the words of the request; other failures as they are. Returns
 * `status`. */
ft_status ft__model_request_explain(const ft_model_request *r, ft_status status, ft_error *err);

/* What such a request says, key by key. */
ft_status ft__model_request_said(const json_t *object, ft_said *out, ft_error *err);
ft_status ft__model_request_read(const json_t *object, ft_device_source find_device, ft_model_source find_model,
                                 ft_stack_source find_stack, void *source, ft_model_request *out, ft_error *err);
#endif
