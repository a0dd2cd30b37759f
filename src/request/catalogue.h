/* `"task": "gpus"` and `"task": "models"`: what of the catalogues is wanted. */
#ifndef FT_REQUEST_CATALOGUE_H
#define FT_REQUEST_CATALOGUE_H
#include "request/request.h"

/* {"task":"gpus"}; {"task":"gpus","name":["h100_sxm","./mine.json"]}; {"task":"gpus","vendor":"amd","dtype":"fp8"}.
 * Names and words point into the document. */
typedef struct ft_gpus_request {
    const json_t *names;             /* one name, spec file or spec object, or a list of them; NULL: the catalogue */
    const char *vendor, *generation; /* NULL: any */
    double min_memory_gib;
    int dtype; /* that it computes in; -1: any */
} ft_gpus_request;
ft_status ft__gpus_request_read(const json_t *object, ft_gpus_request *out, ft_error *err);

/* {"task":"models"}; {"task":"models","name":"llama"}; {"task":"models","types":true}. */
typedef struct ft_models_request {
    const char *name;    /* a model, a path, or a word that names hold; "" for all */
    const char *read_as; /* of an unknown architecture; NULL: its own */
    bool types;          /* the architectures that are read, instead of models */
} ft_models_request;
ft_status ft__models_request_read(const json_t *object, ft_models_request *out, ft_error *err);
#endif
