/* Whole files, mappings, folders, and the hash. */
#define _GNU_SOURCE /* symlink, mkfifo under -std=c17 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "failing_alloc.h"
#include "scratch.h"

static void reading_gives_the_bytes_and_a_nul(void **state)
{
    (void)state;
    char *text;
    size_t length;
    const char *path = scratch_file("some", "ab\0cd", 5);
    assert_int_equal(ft__file_read(path, 0, &text, &length, NULL), FT_OK);
    assert_int_equal(length, 5);
    assert_memory_equal(text, "ab\0cd", 6);
    free(text);
    assert_int_equal(ft__file_read(scratch_text("empty", ""), 0, &text, &length, NULL), FT_OK);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    free(text);
}

static void large_files_come_whole(void **state)
{
    (void)state;
    size_t size = 3 * 1000 * 1000 + 17, length;
    char *data = malloc(size), *text;
    for (size_t i = 0; i < size; i++) data[i] = (char)(i * 31 >> 3);
    const char *path = scratch_file("large", data, size);
    assert_int_equal(ft__file_read(path, 0, &text, &length, NULL), FT_OK);
    assert_int_equal(length, size);
    assert_memory_equal(text, data, size);
    free(text);
    assert_int_equal(ft__file_read(path, size, &text, &length, NULL), FT_OK);
    free(text);
    ft_error err;
    assert_int_equal(ft__file_read(path, size - 1, &text, &length, &err), FT_E_FILE);
    assert_null(text);
    assert_non_null(strstr(err.message, "larger than 3000016 bytes"));
    assert_string_equal(err.where, path);
    free(data);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "through a pipe", 14), 14);
    close(ends[1]);
    char path[64], *text;
    size_t length;
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(ft__file_read(path, 100, &text, &length, NULL), FT_OK);
    assert_string_equal(text, "through a pipe");
    free(text);
    close(ends[0]);
}

static void a_file_that_cannot_be_read_is_named_with_the_reason(void **state)
{
    (void)state;
    ft_error err;
    char *text;
    const void *at;
    size_t length;
    const char *path = scratch_path("nowhere");
    assert_int_equal(ft__file_read(path, 0, &text, &length, &err), FT_E_FILE);
    assert_null(text);
    assert_non_null(strstr(err.where, "nowhere"));
    assert_null(strstr(err.message, "nowhere")); /* said once */
    assert_non_null(strstr(err.message, "No such file"));
    assert_int_equal(ft__file_map(path, &at, &length, &err), FT_E_FILE);
    assert_null(at);
    assert_non_null(strstr(err.message, "No such file"));
    assert_int_equal(ft__file_read(scratch_path(""), 0, &text, &length, &err), FT_E_FILE);
    assert_non_null(strstr(err.message, "directory"));
    assert_int_equal(ft__file_map(scratch_path(""), &at, &length, &err), FT_E_FILE);
    assert_non_null(strstr(err.message, "not a regular file"));
}

static void existence(void **state)
{
    (void)state;
    assert_true(ft__file_exists(scratch_text("here", "x")));
    assert_true(ft__file_exists(scratch_path("")));
    assert_false(ft__file_exists(scratch_path("not here")));
}

static size_t files_in_folder(void)
{
    char **names;
    size_t count;
    assert_int_equal(ft__folder_list(scratch_path("w"), "", &names, &count, NULL), FT_OK);
    ft__folder_list_free(names, count);
    return count;
}

static void writing_replaces_the_file_and_leaves_nothing_else(void **state)
{
    (void)state;
    mkdir(scratch_path("w"), 0777);
    const char *path = scratch_path("w/out");
    char *text;
    size_t length;
    assert_int_equal(ft__file_write(path, "first", 5, NULL), FT_OK);
    assert_int_equal(ft__file_write(path, "2nd", 3, NULL), FT_OK);
    assert_int_equal(ft__file_read(path, 0, &text, &length, NULL), FT_OK);
    assert_string_equal(text, "2nd");
    free(text);
    assert_int_equal(ft__file_write(path, "", 0, NULL), FT_OK);
    assert_int_equal(files_in_folder(), 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

static void writing_through_a_link_keeps_the_link(void **state)
{
    (void)state;
    const char *link = scratch_path("link"), *target = scratch_text("target", "old");
    struct stat info;
    char *text;
    size_t length;
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(ft__file_write(link, "new", 3, NULL), FT_OK);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(ft__file_read(target, 0, &text, &length, NULL), FT_OK);
    assert_string_equal(text, "new");
    free(text);
}

static void devices_are_written_straight_and_a_full_one_says_so(void **state)
{
    (void)state;
    ft_error err;
    assert_int_equal(ft__file_write("/dev/null", "abc", 3, &err), FT_OK);
    if (!ft__file_exists("/dev/full")) return;
    assert_int_equal(ft__file_write("/dev/full", "abc", 3, &err), FT_E_FILE);
    assert_non_null(strstr(err.message, "No space left"));
}

static void a_write_that_fails_half_way_leaves_the_old_file_whole(void **state)
{
    (void)state;
    mkdir(scratch_path("w"), 0777);
    const char *path = scratch_text("w/out", "the old text");
    size_t files = files_in_folder(), length;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char *text, large[5000] = "";
    ft_error err;
    ft_status status = ft__file_write(path, large, sizeof large, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, FT_E_FILE);
    assert_non_null(strstr(err.message, "File too large"));
    assert_int_equal(files_in_folder(), files);
    assert_int_equal(ft__file_read(path, 0, &text, &length, NULL), FT_OK);
    assert_string_equal(text, "the old text");
    free(text);
}

static void writing_where_one_cannot_is_an_error(void **state)
{
    (void)state;
    ft_error err;
    assert_int_equal(ft__file_write(scratch_path("no/such/folder"), "x", 1, &err), FT_E_FILE);
    assert_non_null(strstr(err.where, "no/such/folder"));
    assert_int_equal(ft__file_write(scratch_path(""), "x", 1, &err), FT_E_FILE);
    char endless[8000];
    memset(endless, 'n', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(ft__file_write(endless, "x", 1, &err), FT_E_FILE);
}

static void a_mapping_shows_the_file(void **state)
{
    (void)state;
    const void *at;
    size_t length;
    assert_int_equal(ft__file_map(scratch_text("mapped", "predictor"), &at, &length, NULL), FT_OK);
    assert_int_equal(length, 9);
    assert_memory_equal(at, "predictor", 9);
    ft__file_unmap(at, length);
    assert_int_equal(ft__file_map(scratch_text("nothing", ""), &at, &length, NULL), FT_OK);
    assert_int_equal(length, 0);
    assert_non_null(at);
    ft__file_unmap(at, length);
    ft__file_unmap(NULL, 0);
}

static void a_folder_is_listed_in_order(void **state)
{
    (void)state;
    mkdir(scratch_path("l"), 0777);
    static const char *const names_in[] = {"b.csv",  "a.csv",       "C.csv",    "a10.csv",
                                           "a2.csv", ".hidden.csv", "x.csv.gz", "csv"};
    for (size_t i = 0; i < sizeof names_in / sizeof *names_in; i++) {
        char name[64];
        snprintf(name, sizeof name, "l/%s", names_in[i]);
        scratch_text(name, "");
    }
    char **names;
    size_t count;
    assert_int_equal(ft__folder_list(scratch_path("l"), ".csv", &names, &count, NULL), FT_OK);
    static const char *const expected[] = {"C.csv", "a.csv", "a10.csv", "a2.csv", "b.csv"};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) assert_string_equal(names[i], expected[i]);
    ft__folder_list_free(names, count);
}

static void a_missing_folder_is_an_empty_one_and_a_file_is_none(void **state)
{
    (void)state;
    char **names = NULL;
    size_t count = 7;
    ft_error err;
    assert_int_equal(ft__folder_list(scratch_path("missing"), ".csv", &names, &count, &err), FT_OK);
    assert_int_equal(count, 0);
    ft__folder_list_free(names, count);
    assert_int_equal(ft__folder_list(scratch_text("file", ""), ".csv", &names, &count, &err), FT_E_FILE);
}

static void the_hash_is_fnv_1a(void **state)
{
    (void)state;
    /* Test vectors of the FNV authors, draft-eastlake-fnv, appendix C. */
    assert_true(ft__hash("", 0, 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(ft__hash("a", 1, 0) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(ft__hash("foobar", 6, 0) == UINT64_C(0x85944171f73967e8));
    assert_true(ft__hash("a", 1, 1) != ft__hash("a", 1, 0));
}

static ft_status use_files(void *context)
{
    char *text, **names;
    size_t length, count;
    ft_status status = ft__file_read(context, 0, &text, &length, NULL);
    if (status != FT_OK) return status;
    free(text);
    status = ft__folder_list(scratch_path("many"), "", &names, &count, NULL);
    if (status != FT_OK) return status;
    ft__folder_list_free(names, count);
    return FT_OK;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    mkdir(scratch_path("many"), 0777);
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/%d", i);
        scratch_text(name, "");
    }
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch_text("any", "thing"));
    assert_true(failing_alloc_sweep(use_files, path) > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_gives_the_bytes_and_a_nul),
        cmocka_unit_test(large_files_come_whole),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named_with_the_reason),
        cmocka_unit_test(existence),
        cmocka_unit_test(writing_replaces_the_file_and_leaves_nothing_else),
        cmocka_unit_test(writing_through_a_link_keeps_the_link),
        cmocka_unit_test(devices_are_written_straight_and_a_full_one_says_so),
        cmocka_unit_test(a_write_that_fails_half_way_leaves_the_old_file_whole),
        cmocka_unit_test(writing_where_one_cannot_is_an_error),
        cmocka_unit_test(a_mapping_shows_the_file),
        cmocka_unit_test(a_folder_is_listed_in_order),
        cmocka_unit_test(a_missing_folder_is_an_empty_one_and_a_file_is_none),
        cmocka_unit_test(the_hash_is_fnv_1a),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_file", tests, scratch_make, scratch_remove);
}
