// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/detect.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dump/io/file_name.h"

#define MAX_ENTRIES (UINT32_C(1) << 25) /* of a listing */

struct looking {
    const struct gd_detect_options *options;
    struct gd_listing *listing;
    struct gd_findings findings;
    struct gd_dump *dump;
};

static int find_all(struct looking *look, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && gd_dump_formats[i]; i++) {
        const struct gd_dump_format *format = gd_dump_formats[i];

        if (!look->options->format || strcmp(format->name, look->options->format) == 0) {
            rc = format->find(format, look->listing, &look->findings, err);
        }
    }
    return rc;
}

/* If one format cannot read its place, record why and continue with the others. */
static int read_one(struct looking *look, const struct gd_finding *finding, struct gd_err *err)
{
    char path[4096] = "";
    struct gd_err why = {.code = GD_OK};
    int rc = finding->format->read(look->listing, finding, look->dump, look->options->go_on,
                                   look->options->ctx, &why);

    if (rc == GD_OK) {
        return GD_OK;
    }
    gd_listing_path(look->listing, finding->root, path, sizeof(path), NULL);
    return gd_dump_leave_out(look->dump, path, &why, err);
}

/* "acl_dump_0.json", "kernel_config_77.json", "kernel_kbyk_dump.json", "kernel_graph_dump.json" */
static bool is_configuration(const char *name)
{
    static const char *const begins[] = {"acl_dump_", "kernel_config_", "kernel_kbyk_dump",
                                         "kernel_graph_dump"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (gd_starts_with(name, begins[i]) && gd_ends_with(name, ".json")) {
            return true;
        }
    }
    return false;
}

/* Why a file next to a dump is not read; NULL: it is not a by-product. What MindSpore's profiler
 * writes into FRAMEWORK since 2.3 is also in its tables that are read. */
static const char *by_product(const struct gd_listing *listing, uint32_t index)
{
    const struct gd_listing_entry *entry = &listing->entry[index];

    if (entry->is_directory) {
        return NULL;
    }
    if (is_configuration(entry->name)) {
        return "a dump configuration: it names the dump's directory and selects what is dumped";
    }
    return gd_is_profile_rest(entry->name) &&
                   strcmp(listing->entry[entry->parent].name, "FRAMEWORK") != 0
               ? "a table of MindSpore's profiler that gradb does not read"
               : NULL;
}

/* Files that tools leave next to a dump: say what they are. */
static int tell_by_products(struct looking *look, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 1; rc == GD_OK && i < look->listing->count; i++) {
        const char *why = by_product(look->listing, i);
        char path[4096];

        if (why && gd_listing_path(look->listing, i, path, sizeof(path), NULL) == GD_OK) {
            rc = gd_dump_left_out(look->dump, path, why, err);
        }
    }
    return rc;
}

/* Any single file may be a tensor file: the place of that format in the findings; otherwise their
 * count. */
static size_t guess_in(const struct looking *look)
{
    size_t i = look->listing->entry[0].is_directory ? look->findings.count : 0;

    while (i < look->findings.count && look->findings.item[i].format != &gd_tensor_files_format) {
        i++;
    }
    return i;
}

/* Reads the guess only where no other format knows the file. */
static int read_findings(struct looking *look, struct gd_err *err)
{
    struct gd_findings *findings = &look->findings;
    size_t guess = guess_in(look);
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < findings->count; i++) {
        rc = i == guess ? GD_OK : read_one(look, &findings->item[i], err);
    }
    if (rc != GD_OK || guess == findings->count) {
        return rc;
    }
    if (gd_dump_count(look->dump) == 0) {
        return read_one(look, &findings->item[guess], err);
    }
    gd_findings_remove(findings, guess);
    return GD_OK;
}

static int read_all(struct looking *look, struct gd_err *err)
{
    int rc = gd_dump_create(look->options->max_graph, &look->dump, err);

    if (rc == GD_OK) {
        gd_dump_set_options(look->dump, look->options->open);
        rc = read_findings(look, err);
    }
    if (look->dump) {
        gd_dump_set_options(look->dump, NULL);
    }
    rc = rc != GD_OK ? rc : tell_by_products(look, err);
    return rc != GD_OK ? rc : gd_dump_finish(look->dump, err);
}

/* Also checks the root itself, which may be given as "." or with a trailing slash. */
static bool is_profile(const struct looking *look, const char *path)
{
    char *real = realpath(path, NULL);
    const char *name = real ? strrchr(real, '/') : NULL;
    bool found = name && gd_is_profile(name + 1, look->listing->entry[0].is_directory);

    free(real);
    for (uint32_t i = 1; !found && i < look->listing->count; i++) {
        const struct gd_listing_entry *entry = &look->listing->entry[i];
        found = gd_is_profile(entry->name, entry->is_directory);
    }
    return found;
}

static int none_found(const struct looking *look, const char *path, struct gd_err *err)
{
    struct gd_buf names = GD_BUF_INIT(4096);
    int rc;

    if (!look->options->format && is_profile(look, path)) {
        return gd_fail_profile(path, err);
    }
    for (size_t i = 0; gd_dump_formats[i]; i++) {
        gd_buf_printf(&names, "%s%s", i ? ", " : "", gd_dump_formats[i]->name);
    }
    if (look->options->format) {
        rc = gd_fail(err, GD_EPROTO, "%.200s contains no %.40s dump", path, look->options->format);
    } else {
        rc =
            gd_fail(err, GD_EPROTO, "%.200s (%u entries) contains no known dump: looked for %.200s",
                    path, look->listing->count, gd_buf_text(&names));
    }
    gd_buf_deinit(&names);
    return rc;
}

static int nothing_read(const struct looking *look, const char *path, struct gd_err *err)
{
    size_t count = 0;
    uint64_t more = 0;
    const struct gd_catalog_fact *left = gd_dump_left(look->dump, &count, &more);

    if (count == 0) {
        return gd_fail(err, GD_EPROTO, "%.200s is an empty %s dump", path,
                       look->findings.item[0].format->name);
    }
    if (strcmp(path, left[0].name) == 0 && strstr(left[0].value, path)) {
        /* the reason already names the path */
        return gd_fail(err, GD_EPROTO, "%.450s", left[0].value);
    }
    return gd_fail(err, GD_EPROTO, "nothing in %.100s can be read: %.120s: %.220s", path,
                   left[0].name, left[0].value);
}

static int look_through(struct looking *look, const char *path, struct gd_err *err)
{
    int rc = find_all(look, err);

    if (rc == GD_OK && look->findings.count == 0) {
        rc = none_found(look, path, err);
    }
    rc = rc != GD_OK ? rc : read_all(look, err);
    if (rc == GD_OK && gd_dump_count(look->dump) == 0) {
        rc = nothing_read(look, path, err);
    }
    return rc;
}

int gd_detect(const char *path, const struct gd_detect_options *options, struct gd_dump **ret,
              struct gd_err *err)
{
    struct looking look = {.options = options};
    int rc;

    if (options->format && !gd_dump_format_find(options->format)) {
        return gd_fail(err, GD_EINVAL, "\"%.60s\" is not a dump format: see \"info formats\"",
                       options->format);
    }
    rc = gd_listing_read(path, MAX_ENTRIES, options->go_on, options->ctx, &look.listing, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = look_through(&look, path, err);
    if (rc != GD_OK) {
        gd_dump_destroy(look.dump);
        gd_findings_clear(&look.findings);
        gd_listing_free(look.listing);
        return rc;
    }
    gd_dump_keep_findings(look.dump, look.listing, &look.findings);
    *ret = look.dump;
    return GD_OK;
}
