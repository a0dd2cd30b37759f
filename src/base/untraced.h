/* A fuzzer that follows every comparison of an inner loop learns nothing and takes twice as long for all the rest. */
#ifndef FT_BASE_UNTRACED_H
#define FT_BASE_UNTRACED_H
#if defined(__clang__) && __has_attribute(no_sanitize)
#define FT_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define FT_UNTRACED
#endif
#endif
