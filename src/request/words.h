/* The words of requests, by the enums they stand for. */
#ifndef FT_REQUEST_WORDS_H
#define FT_REQUEST_WORDS_H
#include "layout/layout.h"
#include "model/lengths.h"
#include "model/workload.h"
#include "request/request.h"

/* Unknown keys of one object that are looked at for what was meant; the first is named if no other is clearer. */
enum { FT_MOST_UNKNOWN = 64 };

typedef enum ft_detail { FT_SUMMARY, FT_LAYERS, FT_KERNELS } ft_detail;
/* Drawings of a step that an answer may have. */
typedef enum ft_picture {
    FT_PICTURE_ROOFLINE,
    FT_PICTURE_TIMELINE,
    FT_PICTURE_MEMORY,
    FT_PICTURE_LAYERS,
    FT_PICTURE_CLASSES,
    FT_PICTURE_INTERVALS,
    FT_PICTURE_PIPELINE,
    FT_PICTURE_COUNT
} ft_picture;

/* What a request for pictures may draw: of a step or a kernel, of an engine under load, of figures. */
typedef enum ft_drawn {
    FT_DRAWN_AS_ROOFLINE,
    FT_DRAWN_AS_TIMELINE,
    FT_DRAWN_AS_MEMORY,
    FT_DRAWN_AS_LAYERS,
    FT_DRAWN_AS_CLASSES,
    FT_DRAWN_AS_INTERVALS,
    FT_DRAWN_AS_PIPELINE,
    FT_DRAWN_AS_PHASES,
    FT_DRAWN_AS_PEAK,
    FT_DRAWN_AS_WAITS,
    FT_DRAWN_AS_TOKENS,
    FT_DRAWN_AS_QUEUE,
    FT_DRAWN_AS_CACHE,
    FT_DRAWN_AS_CURVES,
    FT_DRAWN_AS_BARS,
    FT_DRAWN_COUNT
} ft_drawn;
enum { FT_LOOK_COUNT = 16 }; /* colours of data/style */

extern const char *const ft__ask_words[FT_ASK_COUNT];
extern const char *const ft__task_words[FT_TASK_COUNT];
extern const char *const ft__scope_words[4];
extern const char *const ft__fusion_words[2];
extern const char *const ft__cache_words[3];
extern const char *const ft__optimizer_words[FT_OPTIMIZER_COUNT];
extern const char *const ft__recompute_words[3];
extern const char *const ft__module_words[FT_MODULE_COUNT];
extern const char *const ft__graphed_words[FT_GRAPHED_COUNT];
extern const char *const ft__remat_words[15]; /* names of results, then of policies */
extern const unsigned ft__remat_masks[15];
extern const char *const ft__offload_words[FT_OFFLOAD_COUNT];
extern const char *const ft__trainer_words[FT_TRAINER_COUNT];
extern const char *const ft__rollout_words[FT_ROLLOUT_COUNT];
extern const char *const ft__away_words[FT_AWAY_COUNT];
extern const char *const ft__refit_words[FT_REFIT_COUNT];
extern const char *const ft__detail_words[3];
extern const char *const ft__picture_words[FT_PICTURE_COUNT];
extern const char *const ft__drawn_words[FT_DRAWN_COUNT];
extern const char *const ft__look_words[FT_LOOK_COUNT];
extern const char *const ft__adapter_words[4];
extern const char *const ft__batching_words[FT_BATCHING_COUNT];
extern const char *const ft__longer_words[FT_LONGER_COUNT];
extern const char *const ft__moment_words[4];
extern const double ft__moment_bytes[4];
/* Number formats: of one kernel; of whole models (ft__recipe_of tells mathematics and autocast); of stored weights;
 * of a cache; on the wire between GPUs. */
extern const char *const ft__dtype_words[FT_DTYPE_COUNT];
extern const char *const ft__recipe_words[10];
extern const char *const ft__stored_words[25];
extern const char *const ft__kv_words[6];
extern const char *const ft__wire_words[4];
extern const double ft__stored_bits[25];
extern const double ft__wire_bytes[4];
extern const ft_dtype ft__kv_dtypes[6];
ft_dtype ft__recipe_of(int word, bool *autocast);
/* Of layouts over GPUs; schedules and kinds of context parallelism are layout/layout.h's. */
extern const char *const ft__deal_words[2];
extern const char *const ft__gather_words[2];
extern const char *const ft__dispatch_words[2];
extern const char *const ft__network_words[2];
extern const char *const ft__count_words[1]; /* of GPUs, where it is not a number */
/* Of one kernel. Layouts: of products, then of images. */
extern const char *const ft__kernel_layout_words[6];
extern const char *const ft__image_words[2];
extern const char *const ft__pass_words[3];
extern const char *const ft__engine_words[5];
extern const char *const ft__storage_words[FT_STORAGE_COUNT]; /* of a kernel's weights */
extern const char *const ft__moe_backend_words[FT_MOE_BACKEND_COUNT];
extern const char *const ft__weight_kernel_words[FT_WEIGHT_KERNEL_COUNT];
extern const char *const ft__moe_routing_words[2];
extern const char *const ft__library_words[FT_LIBRARY_COUNT];
extern const char *const ft__timing_words[2];
/* Of serving under load: keys_serve.h. */
extern const char *const ft__settings_words[2];
extern const char *const ft__start_words[2];
extern const char *const ft__scheduling_words[5];
extern const char *const ft__routing_words[3];
extern const char *const ft__find_words[2];
/* Of studies, searches and catalogues: keys_study.h. */
extern const char *const ft__shape_words[2];
extern const char *const ft__use_words[2];
extern const char *const ft__swept_words[11];
extern const char *const ft__guidance_words[3];
extern const char *const ft__vendor_words[3];
extern const char *const ft__allowed_words[7];
extern const char *const ft__pricing_words[3]; /* cost/prices.c */
extern const char *const ft__choice_words[5];
extern const char *const ft__goal_words[5]; /* the last is another word for the first */
#endif
