/* gpu.c: from a name, a file or an object to a device. The stages stand in spec.h. */
#include "device/gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "device/fields.h"
#include "device/spec.h"

/* A file may extend a file that extends a file; one that extends itself ends here. */
enum { DEEPEST_BASE = 8 };

static ft_status resolve(const json_t *object, const char *where, const char *folder, int depth, ft_spec *out,
                         ft_text *warnings, ft_error *err);

/* A spec file's relative "base" is relative to the file, as an #include would be. */
static ft_status base_path(const char *base, const char *folder, const char *where, char path[1024], ft_error *err)
{
    const char *slash = folder ? strrchr(folder, '/') : NULL;
    int length = base[0] == '/' || !slash ? snprintf(path, 1024, "%s", base)
                                          : snprintf(path, 1024, "%.*s/%s", (int)(slash - folder), folder, base);
    char shown[80];
    if (length < 0 || length >= 1024)
        return ft__fail_at(err, FT_E_FILE, where, 0, 0, "the path of the base \"%s...\" is too long",
                           ft__spec_cut(shown, sizeof shown, base));
    return FT_OK;
}

static ft_status load_base(const char *base, const char *where, const char *folder, int depth, ft_spec *out,
                           ft_text *warnings, ft_error *err)
{
    char key[256] = "base";
    ft__spec_path(key, where, "base");
    if (depth >= DEEPEST_BASE)
        return ft__fail_at(err, FT_E_SPEC, key, 0, 0,
                           "\"base\" leads through more than %d files: does one extend itself?", DEEPEST_BASE);
    if (!ft__is_path(base)) {
        ft_status status = ft__catalogue_spec(base, out, err);
        if (status == FT_E_NAME && err) snprintf(err->where, sizeof err->where, "%s", key);
        return status;
    }
    char path[1024];
    json_t *json = NULL;
    FT_TRY(base_path(base, folder, key, path, err));
    FT_TRY(ft__json_load(path, &json, err));
    ft_status status = resolve(json, path, path, depth + 1, out, warnings, err);
    json_decref(json);
    return status;
}

static ft_status resolve(const json_t *object, const char *where, const char *folder, int depth, ft_spec *out,
                         ft_text *warnings, ft_error *err)
{
    const char *base = NULL;
    FT_TRY(ft__spec_parse(object, where, out, &base, err));
    if (base) {
        ft_spec parent;
        FT_TRY(load_base(base, where, folder, depth, &parent, warnings, err));
        ft__spec_extend(out, &parent, warnings);
    } else {
        ft_spec relative;
        const char *kin = ft__spec_kin(out, warnings);
        const char *chip = kin ? NULL : ft__capability_kin(out->capability);
        if (kin || chip) FT_TRY(ft__catalogue_spec(kin ? kin : chip, &relative, err));
        if (chip) ft__spec_lend_traits(out, &relative, warnings);
        FT_TRY(ft__spec_complete(out, where, kin ? &relative : NULL, warnings, err));
    }
    return ft__spec_check(out, where, warnings, err);
}

/* Everything that a kernel's forecast depends on: all fields but those for people, the market and the links. */
static bool same_figures(const ft_device *a, const ft_device *b)
{
    ft_device both[] = {*a, *b};
    for (int i = 0; i < 2; i++) {
        ft_device *d = &both[i];
        d->title[0] = d->architecture[0] = d->compute_capability[0] = d->link_kind[0] = '\0';
        d->year = d->link_gpus = 0;
        d->link_switched = d->link_reduces = d->link_apart = false;
        d->base_mhz = d->sustained_mhz = d->l2_bytes_per_clk = d->price_usd_per_hour = d->power_cap_w = 0;
        d->link_gbps_per_direction = d->server_nic_gbit = d->pcie_gbps = 0;
    }
    return ft__device_hash(&both[0]) == ft__device_hash(&both[1]);
}

/* Measurements belong to a name. Another GPU under the same one is forecast as if it had been measured. */
static ft_status check_name(const ft_device *device, ft_text *warnings, ft_error *err)
{
    size_t i = 0;
    while (i < ft__catalogue_count() && strcmp(ft__catalogue_name(i), device->name) != 0) i++;
    if (!warnings || i == ft__catalogue_count()) return FT_OK;
    ft_device namesake;
    FT_TRY(ft__catalogue_find(device->name, &namesake, err));
    if (!same_figures(device, &namesake))
        ft__warn(warnings, "name: %s is in the catalogue with other figures; its measurements are taken for this GPU's",
                 device->name);
    return FT_OK;
}

static ft_status read_from(const json_t *object, const char *where, const char *folder, ft_device *out,
                           ft_text *warnings, ft_error *err)
{
    ft_spec spec;
    FT_TRY(resolve(object, where, folder, 0, &spec, warnings, err));
    ft__spec_to_device(&spec, out);
    FT_TRY(check_name(out, warnings, err));
    if (warnings && warnings->failed) return ft__fail_at(err, FT_E_MEMORY, where, 0, 0, "out of memory for warnings");
    return FT_OK;
}

ft_status ft__device_read(const json_t *spec, const char *where, ft_device *out, ft_text *warnings, ft_error *err)
{
    return read_from(spec, where ? where : "", NULL, out, warnings, err);
}

ft_status ft__device_open(const char *name_or_path, ft_device *out, ft_text *warnings, ft_error *err)
{
    if (!ft__is_path(name_or_path)) return ft__catalogue_find(name_or_path, out, err);
    json_t *json = NULL;
    FT_TRY(ft__json_load(name_or_path, &json, err));
    ft_status status = read_from(json, name_or_path, name_or_path, out, warnings, err);
    json_decref(json);
    return status;
}
