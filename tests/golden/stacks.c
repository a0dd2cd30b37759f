/* Stacks through the front door: what follows where none is named can be named, a number format is no software, and a
 * stack of one's own is the one it stands on but for what it says. */
#include <string.h>

#include "golden.h"

static void without_interval(json_t *answer)
{
    json_object_del(answer, "low_ms");
    json_object_del(answer, "high_ms");
    json_object_del(json_object_get(answer, "energy"), "low_joules");
    json_object_del(json_object_get(answer, "energy"), "high_joules");
}

/* Naming what the answer says, with every default of a named stack said too, gives the same answer; of fused kernels
 * with less doubt, since it is known then what ran. */
static void what_follows_can_be_named(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "\"execution\":\"eager\",\"master_weights\":false",
        "\"execution\":\"compile\",\"compile_scope\":\"auto\",\"master_weights\":false",
        "\"execution\":\"eager\",\"master_weights\":false,\"parallel\":{\"dp\":8,\"zero\":0}",
        "\"execution\":\"eager\",\"master_weights\":false,\"parallel\":{\"dp\":8,\"zero\":2}",
        "\"execution\":\"compile\",\"master_weights\":false,\"parallel\":{\"dp\":8,\"zero\":3}",
        "\"execution\":\"eager\",\"master_weights\":true,\"parallel\":{\"dp\":4,\"tp\":2,\"zero\":1}",
        "\"execution\":\"compile\",\"master_weights\":true,\"parallel\":{\"dp\":4,\"pp\":2,\"zero\":3}",
        "\"execution\":\"fused\",\"master_weights\":true,\"dtype\":\"fp16\",\"parallel\":{\"dp\":2,\"tp\":2,\"pp\":2,"
        "\"zero\":1}",
        "\"execution\":\"fused\",\"master_weights\":true,\"dtype\":\"fp8\",\"parallel\":{\"dp\":4,\"tp\":2,\"sp\":true,"
        "\"zero\":1}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        static const char format[] = "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":1,"
                                     "\"global_batch\":16,\"seq\":1024,\"attention\":\"flash\",%s%s%s%s}";
        json_t *left_out = golden_ask(format, requests[i], "", "", "");
        const char *name = json_string_value(json_object_get(left_out, "stack"));
        golden_holds(name, "request %d says no stack", (int)i);
        json_t *named = golden_ask(format, requests[i], ",\"stack\":\"", name, "\"");
        const double low = golden_figure(named, "low_ms") / golden_figure(left_out, "low_ms");
        const double high = golden_figure(named, "high_ms") / golden_figure(left_out, "high_ms");
        if (strstr(requests[i], "fused")) {
            golden_holds(low > 1 && high < 1, "request %d: named, it begins %g and ends %g times as late", (int)i, low,
                         high);
            without_interval(left_out);
            without_interval(named);
        }
        golden_holds(json_equal(left_out, named), "request %d is another one by the name of %s", (int)i, name);
        json_decref(left_out);
        json_decref(named);
    }
}

/* fp16 costs what bf16 does, whatever the layout; Megatron of 2021 cost more, but for what products pay that add to a
 * buffer where there is nothing to add. */
static void a_number_format_is_no_software(void **state)
{
    (void)state;
    static const char *const layouts[] = {"\"dp\":64", "\"dp\":64,\"zero\":1", "\"dp\":64,\"zero\":3",
                                          "\"tp\":8,\"pp\":4,\"vpp\":2,\"dp\":2"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        static const char format[] =
            "{\"task\":\"train\",\"model\":\"gpt3-13b\",\"gpu\":\"h100_sxm\",\"dtype\":\"%s\",\"execution\":\"fused\","
            "\"master_weights\":true,\"global_batch\":64,\"parallel\":{%s}%s}";
        double brain = golden_value("step_ms", format, "bf16", layouts[i], "");
        double half = golden_value("step_ms", format, "fp16", layouts[i], "");
        golden_near(layouts[i], half, brain, 0.15);
        double then = golden_value("step_ms", format, "fp16", layouts[i], ",\"stack\":\"megatron_2021\"");
        golden_holds(then >= 0.98 * half && (i < 2 || then > 1.02 * half), "%s: %g ms, in 2021 %g", layouts[i], half,
                     then);
    }
}

static void ones_own_stands_on_another(void **state)
{
    (void)state;
    static const char format[] = "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"stack\":%s}";
    double base = golden_value("launches", format, "\"fsdp2\"");
    double same = golden_value("launches", format, "{\"base\":\"fsdp2\",\"name\":\"ours\"}");
    double fewer = golden_value("launches", format, "{\"base\":\"fsdp2\",\"traits\":{\"fused_norms\":true}}");
    golden_near("launches", same, base, 1e-12);
    golden_holds(fewer < base, "%g launches with fused norms, %g without", fewer, base);
    json_t *answer = golden_ask(format, "{\"base\":\"fsdp2\",\"name\":\"ours\"}");
    golden_holds(!strcmp(json_string_value(json_object_get(answer, "stack")), "ours"), "its name is another");
    json_decref(answer);
}

/* What would fit is looked for among what the stack can do. */
static void remedies_stay_with_the_stack(void **state)
{
    (void)state;
    static const char *const stacks[] = {"ddp", "llm_c", "torchtitan"};
    static const bool sharded[] = {false, false, true};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        json_t *answer = golden_ask("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"seq\":8192,"
                                    "\"stack\":\"%s\",\"parallel\":{\"dp\":8,\"zero\":0}}",
                                    stacks[i]);
        const char *remedy = json_string_value(json_object_get(json_object_get(answer, "memory"), "remedy"));
        golden_holds(remedy && *remedy, "%s has no remedy", stacks[i]);
        bool parameters = strstr(remedy, "zero 3") || strstr(remedy, "zero 2"), cut = strstr(remedy, "tp ");
        golden_holds(parameters == sharded[i] && !cut, "%s: %s", stacks[i], remedy);
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_can_be_named),
        cmocka_unit_test(a_number_format_is_no_software),
        cmocka_unit_test(ones_own_stands_on_another),
        cmocka_unit_test(remedies_stay_with_the_stack),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
