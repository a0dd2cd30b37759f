/* A device with one field changed, for every field there is: by the list that the library itself goes through. */
#ifndef FT_TEST_EVERY_FIELD_H
#define FT_TEST_EVERY_FIELD_H
#include <string.h>

#include "device/fields.h"

enum {
#define X(field) FIELD_##field,
    FT_DEVICE_FIELDS(X, X, X, X)
#undef X
        EVERY_FIELD
};

static inline const char *field_name(int index)
{
    static const char *const names[EVERY_FIELD] = {
#define X(field) #field,
        FT_DEVICE_FIELDS(X, X, X, X)
#undef X
    };
    return names[index];
}

static inline void change_text(char *text)
{
    text[0] = text[0] == 'x' ? 'y' : 'x';
    text[1] = '\0';
}

/* Enums and flags toggle between 0 and 1, numbers go down, figures a third up: what remains is a GPU that could be. */
static inline void change_field(ft_device *device, int index)
{
    switch (index) {
#define TEXT(field)                 \
    case FIELD_##field:             \
        change_text(device->field); \
        break;
#define WHOLE(field)                                           \
    case FIELD_##field:                                        \
        device->field = device->field ? device->field - 1 : 1; \
        break;
#define FIGURE(field)                                                  \
    case FIELD_##field:                                                \
        device->field = device->field > 0 ? device->field * 4 / 3 : 1; \
        break;
#define RATES(field)                                                       \
    case FIELD_##field:                                                    \
        for (int d = 0; d < FT_DTYPE_COUNT; d++) device->field[d] *= 0.75; \
        break;
        FT_DEVICE_FIELDS(TEXT, WHOLE, FIGURE, RATES)
#undef TEXT
#undef WHOLE
#undef FIGURE
#undef RATES
    default: break;
    }
}
#endif
