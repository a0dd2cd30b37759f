/* The GPUs and models that are known, and the sheets of single ones. */
#ifndef FT_STUDY_CATALOGUE_H
#define FT_STUDY_CATALOGUE_H
#include "request/catalogue.h"
#include "study/context.h"

typedef struct ft_gpu_sheet {
    ft_device device;
    json_t *spec;         /* the file as it stands, for its sources and notes; NULL: none */
    const char *warnings; /* of the spec's checks, one per line */
} ft_gpu_sheet;

/* Free it with ft__gpu_list_free, whatever ft__gpus_of said. */
typedef struct ft_gpu_list {
    ft_gpu_sheet *sheets;
    size_t count;
    bool named; /* those asked for by name, with their specs; otherwise the catalogue */
    ft_arena *arena;
} ft_gpu_list;
ft_status ft__gpus_of(const ft_gpus_request *r, ft_gpu_list *out, ft_error *err);
void ft__gpu_list_free(ft_gpu_list *list);
const char *ft__vendor_name(ft_vendor v);
/* The names of the catalogue in order; NULL past its end. And the one that a name means, however it is written. */
const char *ft__gpu_name(size_t index);
ft_status ft__gpu_named(const char *name, const char **out, ft_error *err);

/* Free it with ft__model_list_free, whatever ft__models_of said. Layers live until the next step with the scratch. */
typedef struct ft_model_list {
    ft_model_sheet *sheets;
    size_t count;
    bool named;             /* one model's sheet, with `layers` */
    const ft_layer *layers; /* its parameters by block */
    size_t layer_count;
    const char **types; /* what "types" asks for; NULL: not asked */
    size_t type_count;
    ft_arena *arena;
} ft_model_list;
ft_status ft__models_of(ft_scratch *scratch, const ft_models_request *r, ft_model_list *out, ft_error *err);
void ft__model_list_free(ft_model_list *list);
#endif
