/* data/predictors/default.ftp, byte by byte, placed by scripts/embed_predictor.py. Aligned to 64. Empty (both
 * addresses equal) when the library was built without the file. */
#ifndef FT_KERNEL_EMBEDDED_PREDICTOR_H
#define FT_KERNEL_EMBEDDED_PREDICTOR_H

extern const unsigned char ft__default_predictor[] __attribute__((visibility("hidden")));
extern const unsigned char ft__default_predictor_end[] __attribute__((visibility("hidden")));
/* data/choices/convolutions.bin, in the same way. */
extern const unsigned char ft__conv_choices[] __attribute__((visibility("hidden")));
extern const unsigned char ft__conv_choices_end[] __attribute__((visibility("hidden")));
#endif
