/* Whether this is a build under sanitizers, where code takes five times as long: what a plain build tries many times
 * over the same lines is tried there on some cases. */
#ifndef FT_TESTS_SANITIZED_H
#define FT_TESTS_SANITIZED_H
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif
#endif
