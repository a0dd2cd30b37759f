/* Pictures of another size than a model's config names. */
#ifndef FT_MODEL_PICTURE_SIZE_H
#define FT_MODEL_PICTURE_SIZE_H
#include "model/arch.h"

/* Height and width in pixels; 0: none is asked for. */
typedef struct ft_picture_size {
    int64_t height, width;
} ft_picture_size;

/* Whether its inputs are pictures or videos, of a size that can be chosen. */
bool ft__takes_pictures(const ft_arch *arch);
/* Gives it that size; nothing where none is asked for, or where it has no such inputs. */
ft_status ft__picture_resize(ft_arch *arch, ft_picture_size size, ft_error *err);
#endif
