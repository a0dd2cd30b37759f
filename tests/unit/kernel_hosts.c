/* Hosts as data: what is compiled in is what the files say, and what a user's file says holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/host.h"

static ft_status read_text(const char *text, ft_host *out, ft_error *err)
{
    json_t *json = NULL;
    *err = (ft_error){0};
    assert_int_equal(ft__json_parse(text, strlen(text), "", &json, err), FT_OK);
    ft_status status = ft__host_read(json, "my.json", out, err);
    json_decref(json);
    return status;
}

static ft_host of_text(const char *text)
{
    ft_host host;
    ft_error err;
    if (read_text(text, &host, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    return host;
}

static void refuses(const char *text, ft_status status, const char *where, const char *message)
{
    ft_host host;
    ft_error err;
    assert_int_equal(read_text(text, &host, &err), status);
    if (strcmp(err.where, where) != 0 || !strstr(err.message, message))
        fail_msg("%s: \"%s: %s\", expected \"%s: ... %s\"", text, err.where, err.message, where, message);
}

/* Behind the name there is nothing but figures. */
enum { FIGURES = (sizeof(ft_host) - offsetof(ft_host, operators)) / sizeof(double) };

static double figure(const ft_host *host, size_t i)
{
    double value;
    memcpy(&value, (const char *)host + offsetof(ft_host, operators) + i * sizeof value, sizeof value);
    return value;
}

static void shipped_hosts_have_every_figure(void **state)
{
    (void)state;
    assert_true(ft__host_count > 0 && ft__usual_host < ft__host_count);
    for (size_t h = 0; h < ft__host_count; h++)
        for (size_t i = 0; i < FIGURES; i++)
            if (!(figure(&ft__hosts[h], i) > 0)) fail_msg("%s lacks figure %zu", ft__hosts[h].name, i);
}

static void a_shipped_file_reads_as_it_was_compiled(void **state)
{
    (void)state;
    for (size_t h = 0; h < ft__host_count; h++) {
        char path[512];
        ft_host host;
        ft_error err = {0};
        snprintf(path, sizeof path, "%s/data/hosts/%s.json", getenv("FORETELL_SOURCE_ROOT"), ft__hosts[h].name);
        if (ft__host_open(path, &host, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
        assert_memory_equal(&host, &ft__hosts[h], sizeof host);
    }
}

static void a_name_finds_a_host(void **state)
{
    (void)state;
    ft_host host;
    ft_error err = {0};
    assert_int_equal(ft__host_open("h200_vm", &host, &err), FT_OK);
    assert_memory_equal(&host, ft__host_find("h200_vm"), sizeof host);
    assert_int_equal(ft__host_open("typical", &host, &err), FT_OK);
    assert_memory_equal(&host, ft__host_usual(), sizeof host);
    assert_int_equal(ft__host_open("h200_wm", &host, &err), FT_E_NAME);
    assert_string_equal(err.where, "host");
    assert_non_null(strstr(err.message, "did you mean \"h200_vm\""));
    assert_int_equal(ft__host_open("laptop", &host, &err), FT_E_NAME);
    assert_non_null(strstr(err.message, "known are desktop, h200_vm"));
    assert_int_equal(ft__host_open("no/such/file.json", &host, &err), FT_E_FILE);
}

/* A machine that was measured stands for its GPU, the middle of many for all others, with a wider interval. */
static void a_gpu_has_the_host_that_it_was_measured_with(void **state)
{
    (void)state;
    ft_device h200 = {.name = "h200_sxm"}, other = {.name = "a100_sxm_80gb", .title = "NVIDIA A100 SXM4 80 GB"};
    const ft_host *vm = ft__host_find("h200_vm"), *typical = ft__host_find("typical");
    assert_ptr_equal(ft__host_of_device(&h200), vm);
    assert_ptr_equal(ft__host_of_device(&other), typical);
    double ratio = typical->python.loop_us / vm->python.loop_us;
    assert_true(ratio > 0.5 && ratio < 1);
    for (int verb = 0; verb < FT_VERB_COUNT; verb++) {
        double all = typical->operators[verb].recorded_us / vm->operators[verb].recorded_us;
        assert_true(all > ratio * 0.999999 && all < ratio * 1.000001);
    }
    assert_true(typical->launches.gap_us == vm->launches.gap_us);
    assert_true(typical->interval.share > vm->interval.share);
}

/* Boards for desktops stand in desktops, under any name of their own; boards for workstations and servers do not. */
static void a_line_of_products_has_its_host(void **state)
{
    (void)state;
    const ft_host *desktop = ft__host_find("desktop"), *typical = ft__host_find("typical");
    const char *const in_desktops[] = {"NVIDIA GeForce RTX 4090", "NVIDIA TITAN RTX", "AMD Radeon RX 7900 XTX"};
    const char *const elsewhere[] = {"NVIDIA RTX A6000", "AMD Radeon PRO W7900", "NVIDIA L40S", ""};
    for (size_t i = 0; i < sizeof in_desktops / sizeof *in_desktops; i++) {
        ft_device device = {.name = "mine"};
        snprintf(device.title, sizeof device.title, "%s", in_desktops[i]);
        assert_ptr_equal(ft__host_of_device(&device), desktop);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        ft_device device = {.name = "mine"};
        snprintf(device.title, sizeof device.title, "%s", elsewhere[i]);
        assert_ptr_equal(ft__host_of_device(&device), typical);
    }
    assert_true(desktop->python.loop_us < typical->python.loop_us);
    assert_true(desktop->checkpoints.again_us == desktop->checkpoints.reentrant_again_us);
}

/* Software that nobody named has fewer operators in the middle; an update has the same tensors by any. */
static void a_share_of_the_operators(void **state)
{
    (void)state;
    const ft_host *typical = ft__host_find("typical");
    ft_issuer all = {.host = typical, .dispatch = FT_DISPATCH_EAGER, .gradients = true}, some = all;
    some.share = typical->adapters.share;
    assert_true(some.share < 1 && ft__host_find("h200_vm")->adapters.share == 1);
    ft_node node = {.verb = FT_DO_POINTWISE, .phase = FT_FORWARD, .op = {.kind = FT_OP_ELEMENTWISE}};
    assert_float_equal(ft__host_node_us(&some, &node) / ft__host_node_us(&all, &node), some.share, 1e-9);
    assert_float_equal(ft__host_module_us(&some, 3) / ft__host_module_us(&all, 3), some.share, 1e-9);
    node.phase = FT_UPDATE;
    assert_true(ft__host_node_us(&some, &node) == ft__host_node_us(&all, &node));
    all.us_per_op = some.us_per_op = 20;
    node.phase = FT_FORWARD;
    assert_true(ft__host_node_us(&some, &node) == ft__host_node_us(&all, &node));
}

static void what_a_file_leaves_out_is_its_base(void **state)
{
    (void)state;
    const ft_host *usual = ft__host_usual();
    ft_host host = of_text("{\"name\":\"mine\",\"operators\":{\"linear\":{\"forward_us\":12.5}},"
                           "\"wrappers\":{\"what\":\"hooks\",\"fsdp_forward_us\":7}}");
    assert_string_equal(host.name, "mine");
    assert_true(host.operators[FT_DO_LINEAR].forward_us == 12.5 && host.wrappers.fsdp_forward_us == 7);
    assert_true(host.operators[FT_DO_LINEAR].backward_us == usual->operators[FT_DO_LINEAR].backward_us);
    assert_true(host.wrappers.fsdp_backward_us == usual->wrappers.fsdp_backward_us);
    host = of_text("{}");
    assert_string_equal(host.name, "typical_custom");
    for (size_t i = 0; i < FIGURES; i++) assert_true(figure(&host, i) == figure(usual, i));
}

static void a_slower_host_is_slower_in_all_but_the_launch_queue(void **state)
{
    (void)state;
    const ft_host *usual = ft__host_find("h200_vm");
    ft_host host = of_text("{\"base\":\"h200_vm\",\"slowdown\":2,\"python\":{\"module_us\":1}}");
    size_t doubled = 0, same = 0;
    for (size_t i = 0; i < FIGURES; i++) {
        doubled += figure(&host, i) == 2 * figure(usual, i);
        same += figure(&host, i) == figure(usual, i);
    }
    assert_true(host.python.module_us == 1); /* given, not the base's */
    assert_int_equal(same, 7);               /* launches, views as dear as an operator, the shares */
    assert_int_equal(doubled + same + 1, FIGURES);
}

static void bad_files_are_refused_with_file_and_key(void **state)
{
    (void)state;
    refuses("{\"operatos\":{}}", FT_E_KEY, "my.json: operatos", "operators");
    refuses("{\"operators\":{\"liner\":{}}}", FT_E_KEY, "my.json: operators.liner", "linear");
    refuses("{\"operators\":{\"linear\":{\"forward\":1}}}", FT_E_KEY, "my.json: operators.linear.forward",
            "forward_us");
    refuses("{\"operators\":{\"linear\":3}}", FT_E_TYPE, "my.json: operators.linear", "object");
    refuses("{\"operators\":[]}", FT_E_TYPE, "my.json: operators", "object");
    refuses("{\"wrappers\":{\"ddp_backward_us\":-1}}", FT_E_RANGE, "my.json: wrappers.ddp_backward_us", "0");
    refuses("{\"wrappers\":{\"ddp_backward_us\":\"1\"}}", FT_E_TYPE, "my.json: wrappers.ddp_backward_us", "number");
    refuses("{\"one_figure\":{\"operator_us\":0}}", FT_E_RANGE, "my.json: one_figure.operator_us", "0.001");
    refuses("{\"slowdown\":0}", FT_E_RANGE, "my.json: slowdown", "0.001");
    refuses("{\"base\":\"h100_vm\"}", FT_E_NAME, "my.json: base", "h200_vm");
    refuses("[]", FT_E_TYPE, "my.json", "object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_hosts_have_every_figure),
        cmocka_unit_test(a_shipped_file_reads_as_it_was_compiled),
        cmocka_unit_test(a_name_finds_a_host),
        cmocka_unit_test(a_gpu_has_the_host_that_it_was_measured_with),
        cmocka_unit_test(a_line_of_products_has_its_host),
        cmocka_unit_test(a_share_of_the_operators),
        cmocka_unit_test(what_a_file_leaves_out_is_its_base),
        cmocka_unit_test(a_slower_host_is_slower_in_all_but_the_launch_queue),
        cmocka_unit_test(bad_files_are_refused_with_file_and_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
