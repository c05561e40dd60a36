// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/msprobe/api_walk.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#define MAX_TOLD 20 /* bad rows of a file that are reported individually */

struct file {
    char *path;
    struct api_where where;
};

int api_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                  struct gd_err *err)
{
    size_t len = strlen(path);
    const char *text;
    struct gd_err told;

    if (strncmp(why->text, path, len) != 0 || why->text[len] != ':') {
        return gd_dump_leave_out(dump, path, why, err);
    }
    text = why->text + len + (why->text[len + 1] == ' ' ? 2 : 1);
    gd_fail(&told, why->code, "%s%s", *text >= '0' && *text <= '9' ? "line " : "", text);
    return gd_dump_leave_out(dump, path, &told, err);
}

int api_take_members(struct api_load *load, const char *path, uint64_t max, api_member_fn fn,
                     void *ctx, struct gd_err *err)
{
    struct gd_file_text text;
    struct gd_err why;
    int rc = gd_file_text_read(path, max, &text, &why);

    if (rc == GD_OK) {
        rc = api_members(&text, path, "", fn, ctx, &why);
        free(text.data);
    }
    return rc == GD_OK || rc == GD_ENOTFOUND ? GD_OK : api_leave_out(load->dump, path, &why, err);
}

int api_bad_row(struct api_load *load, const char *path, uint64_t line, size_t bad,
                const struct gd_err *why, struct gd_err *err)
{
    struct gd_err told;

    if (why->code != GD_ENOMEM && why->code != GD_EINTR && bad > MAX_TOLD) {
        return GD_OK;
    }
    gd_fail(&told, why->code, "line %llu: %.300s", (unsigned long long)line, why->text);
    return api_leave_out(load->dump, path, &told, err);
}

int api_take_rows(struct api_load *load, struct table *table, const char *path,
                  int (*take)(void *ctx, struct gd_err *err), void *ctx, struct gd_err *err)
{
    size_t bad = 0;
    bool more = true;
    int rc = table_next(table, &more, err);

    while (rc == GD_OK && more) {
        struct gd_err why;

        if (take(ctx, &why) != GD_OK) {
            rc = api_bad_row(load, path, table_line(table), ++bad, &why, err);
        }
        rc = rc != GD_OK ? rc : table_next(table, &more, err);
    }
    return rc;
}

/* Whether the file marks the format; if so, what its path says. */
static bool is_wanted(const struct api_walk_ops *ops, const struct gd_listing *listing, uint32_t i,
                      char path[PATH_MAX], struct api_where *where)
{
    if (listing->entry[i].is_directory || !ops->wants(listing, i) ||
        gd_listing_path(listing, i, path, PATH_MAX, NULL) != GD_OK) {
        return false;
    }
    (ops->where ? ops->where : api_where_of)(path, where);
    return true;
}

int api_walk_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                  struct gd_findings *findings, struct gd_err *err)
{
    const struct api_walk_ops *ops = format->detail;
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        struct gd_finding finding = {.format = format, .rule = ops->rule, .files = 1};
        struct api_where where;
        char path[PATH_MAX];

        if (is_wanted(ops, listing, i, path, &where)) {
            finding.root = gd_listing_up(listing, i, where.above + 1);
            rc = gd_findings_add_root(findings, &finding, err);
        }
    }
    return rc;
}

static int compare_files(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    int roots = strcmp(x->where.root, y->where.root);

    if (x->where.rank != y->where.rank) {
        return x->where.rank < y->where.rank ? -1 : 1;
    }
    if (roots != 0) {
        return roots;
    }
    if (x->where.step != y->where.step) {
        return x->where.step < y->where.step ? -1 : 1;
    }
    return strcmp(x->path, y->path);
}

static int take_files(const struct api_walk_ops *ops, struct api_load *load,
                      const struct file *file, size_t count, struct gd_err *err)
{
    int rc = gd_dump_catalog(load->dump, file->where.rank, file->where.root, &load->catalog, err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct gd_err why = {.code = GD_OK};

        if (load->go_on && !load->go_on(load->ctx, load->done)) {
            return gd_fail(err, GD_EINTR, "interrupted after %llu tensors",
                           (unsigned long long)load->done);
        }
        rc = ops->take(load, file[i].path, &file[i].where, &why);
        rc = rc != GD_OK ? api_leave_out(load->dump, file[i].path, &why, err) : GD_OK;
        if (rc == GD_OK && load->count > 0 && !ops->steps_inside) {
            rc = gd_catalog_add_step(load->catalog, file[i].where.step, err);
        }
    }
    if (rc == GD_OK && ops->finish) {
        rc = ops->finish(load, &file[count - 1].where, err);
    }
    return rc != GD_OK ? rc : api_load_finish(load, err);
}

static int collect_files(const struct api_walk_ops *ops, const struct gd_listing *listing,
                         uint32_t root, struct file **ret, size_t *count, struct gd_err *err)
{
    size_t cap = 0;

    for (uint32_t i = root; i < listing->count; i++) {
        struct file file;
        char path[PATH_MAX];

        if (!is_wanted(ops, listing, i, path, &file.where) ||
            gd_listing_up(listing, i, file.where.above + 1) != root) {
            continue;
        }
        file.path = gd_grow_list(ret, *count, &cap, sizeof(file)) ? strdup(path) : NULL;
        if (!file.path) {
            return gd_fail_nomem(err);
        }
        (*ret)[(*count)++] = file;
    }
    return GD_OK;
}

int api_walk_read(const struct gd_listing *listing, const struct gd_finding *finding,
                  struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                  struct gd_err *err)
{
    const struct api_walk_ops *ops = finding->format->detail;
    struct file *file = NULL;
    size_t count = 0, begin = 0;
    int rc = collect_files(ops, listing, finding->root, &file, &count, err);

    if (count > 1) {
        qsort(file, count, sizeof(*file), compare_files);
    }
    while (rc == GD_OK && begin < count) {
        struct api_load load = {.dump = dump, .go_on = go_on, .ctx = ctx};
        size_t end = begin + 1;

        while (end < count && file[end].where.rank == file[begin].where.rank &&
               strcmp(file[end].where.root, file[begin].where.root) == 0) {
            end++;
        }
        rc = take_files(ops, &load, file + begin, end - begin, err);
        api_load_clear(&load);
        begin = end;
    }
    for (size_t i = 0; i < count; i++) {
        free(file[i].path);
    }
    free(file);
    return rc;
}
