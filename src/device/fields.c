/* fields.c: a device as the sum of all its fields.
 *
 * Forecasts are kept by device, and a request's device may be anything: a catalogue entry with one figure changed under
 * the same name. Bytes will not do (padding, and what stands in an array behind a text's end), a list of the figures
 * that forecasts read today will not do either: tomorrow's are missing from it.
 */
#include "device/fields.h"

#include "base/hash.h"

/* One initialiser per field of the list: one too many or too few is an error, and the list is the struct. */
#define TEXT(field) "",
#define WHOLE(field) 0,
#define FIGURE(field) 0,
#define RATES(field) {0},
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
static const ft_device one_each __attribute__((unused)) = {FT_DEVICE_FIELDS(TEXT, WHOLE, FIGURE, RATES)};
#pragma GCC diagnostic pop
#undef TEXT
#undef WHOLE
#undef FIGURE
#undef RATES

uint64_t ft__device_hash(const ft_device *device)
{
    uint64_t h = sizeof one_each;
#define TEXT(field) h = ft__mix_text(h, device->field, sizeof device->field);
#define WHOLE(field) h = ft__mix(h, (uint64_t)device->field);
#define FIGURE(field) h = ft__mix_double(h, device->field);
#define RATES(field) \
    for (int d = 0; d < FT_DTYPE_COUNT; d++) h = ft__mix_double(h, device->field[d]);
    FT_DEVICE_FIELDS(TEXT, WHOLE, FIGURE, RATES)
#undef TEXT
#undef WHOLE
#undef FIGURE
#undef RATES
    return h;
}
