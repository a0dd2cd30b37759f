/* A request: one JSON object -> the task; for a kernel the operator, the device and the quantile it asks for. Whole
 * models are model.h's. */
#ifndef FT_REQUEST_REQUEST_H
#define FT_REQUEST_REQUEST_H
#include "base/json.h"
#include "kernel/kernel.h"

/* One key of an operator. The same table reads requests, names the nearest known key and tells the program which
 * sizes it can sweep. */
typedef enum ft_field_type {
    FT_FIELD_SIZE,     /* int64_t */
    FT_FIELD_SMALL,    /* int */
    FT_FIELD_REAL,     /* double */
    FT_FIELD_SWITCH,   /* bool */
    FT_FIELD_TRISTATE, /* int: -1 until said, then 0 or 1 */
    FT_FIELD_LAYOUT,   /* char[4]: nn nt tn tt */
    FT_FIELD_IMAGE,    /* bool: nhwc or nchw */
    FT_FIELD_PASS,
    FT_FIELD_DTYPE,
    FT_FIELD_ENGINE,
    FT_FIELD_STORAGE,       /* ft_storage */
    FT_FIELD_MOE_BACKEND,   /* int */
    FT_FIELD_WEIGHT_KERNEL, /* int */
    FT_FIELD_ROUTING,       /* bool: even or random */
    FT_FIELD_UNLESS,        /* bool: true where the switch is off */
    FT_FIELD_LIBRARY,
    FT_FIELD_NAME /* const char *, borrowed from the document */
} ft_field_type;

typedef struct ft_field {
    const char *key;
    ft_field_type type;
    size_t offset; /* in ft_op */
    ft_need need;
    int64_t low; /* sizes: the least that makes sense, 0 or 1 */
} ft_field;

const ft_field *ft__request_fields(ft_op_kind kind, size_t *count);
/* The names `op` takes, in the order in which they are best read. */
const char *const *ft__request_op_names(size_t *count);
const char *const *ft__request_exchange_names(size_t *count); /* those of a collective */

/* Where devices come from is the context's affair. The pointer lives at least until the next call with `source`. */
typedef ft_status (*ft_device_source)(void *source, const json_t *gpu, const ft_device **out, ft_error *err);

typedef struct ft_request {
    ft_op op; /* its name points into the document, which must outlive it */
    const ft_device *device;
    double quantile;      /* 0: the context's */
    const char *warnings; /* of a spec's checks, one per line; "" for none; lives as long as the device */
} ft_request;

/* What is asked for; the words of "task", in the contract's order. */
typedef enum ft_ask {
    FT_ASK_TRAIN,
    FT_ASK_FORWARD,
    FT_ASK_PREFILL,
    FT_ASK_DECODE,
    FT_ASK_SERVE,
    FT_ASK_KERNEL,
    FT_ASK_COLLECTIVE,
    FT_ASK_MEMORY,
    FT_ASK_TRACE,
    FT_ASK_MODELS, /* those from here on are answered by study rooms of their own */
    FT_ASK_GPUS,
    FT_ASK_INFER,
    FT_ASK_LARGEST,
    FT_ASK_SCALE,
    FT_ASK_SWEEP,
    FT_ASK_COMPARE,
    FT_ASK_PLAN,
    FT_ASK_CHOOSE,
    FT_ASK_PLAN_SERVE,   /* "plan" with objectives or a rate */
    FT_ASK_CHOOSE_SERVE, /* "choose" likewise */
    FT_ASK_DRAW,
    FT_ASK_COUNT
} ft_ask;
/* Also checks that the request is an object and its id a scalar. What this version lacks is refused by name. */
ft_status ft__request_task(const json_t *object, ft_ask *out, ft_error *err);
/* One of a few words under `key`; *out is left alone where the key is missing. The error lists the words, or says which
 * one was probably meant. */
ft_status ft__request_word(const json_t *object, const char *key, const char *const *words, size_t count, int *out,
                           ft_error *err);
/* The same in an object that stands under the key `section` of the request. */
ft_status ft__request_word_in(const json_t *object, const char *section, const char *key, const char *const *words,
                              size_t count, int *out, ft_error *err);
/* The same of a word that is there; `where` is its key's path. */
ft_status ft__request_word_said(const char *word, const char *where, const char *key, const char *const *words,
                                size_t count, int *out, ft_error *err);

/* Errors carry the key's path in `where`. */
ft_status ft__request_read(const json_t *object, ft_device_source find, void *source, ft_request *out, ft_error *err);
#endif
