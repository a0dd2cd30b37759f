/* Names that people copy from the Hub answer: tests/data/hub_names.txt, one a line, each opened as a request would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/config/config.h"

static void every_name_of_the_list_is_a_model(void **state)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024], line[256];
    int rows = 0, unknown = 0;
    (void)state;
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/tests/data/hub_names.txt", root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        ft_arch arch;
        ft_error err = {0};
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#') continue;
        rows++;
        if (ft__model_open(line, NULL, &arch, &err) == FT_OK) continue;
        unknown++;
        print_message("%s: %s\n", line, err.message);
    }
    fclose(file);
    assert_int_equal(0, unknown);
    assert_true(rows >= 1000);
}

/* What stands behind a name is taken off one piece at a time; what nobody wrote is not guessed. */
static void words_of_training_are_taken_off_and_no_others(void **state)
{
    ft_arch arch;
    ft_error err = {0};
    (void)state;
    assert_int_equal(FT_OK, ft__model_open("OpenGVLab/InternVL3_5-8B-Pretrained", NULL, &arch, &err));
    assert_int_equal(FT_OK, ft__model_open("01-ai/Yi-1.5-34B-Chat-16K", NULL, &arch, &err));
    assert_int_not_equal(FT_OK, ft__model_open("01-ai/Yi-1.5-34B-Chat-17K", NULL, &arch, &err));
    assert_int_not_equal(FT_OK, ft__model_open("-Chat", NULL, &arch, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_of_the_list_is_a_model),
        cmocka_unit_test(words_of_training_are_taken_off_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
