// SPDX-License-Identifier: GPL-3.0-or-later
/* The list of places at which dumps were found. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/format.h"

#define MAX_FINDINGS 100000

int gd_findings_add(struct gd_findings *findings, const struct gd_finding *finding,
                    struct gd_err *err)
{
    char *rule;

    if (findings->count == MAX_FINDINGS) {
        return gd_fail(err, GD_ELIMIT, "the directory contains more than %d dumps", MAX_FINDINGS);
    }
    if (!gd_grow_list(&findings->item, findings->count, &findings->cap, sizeof(*findings->item))) {
        return gd_fail_nomem(err);
    }
    rule = strdup(finding->rule ? finding->rule : "");
    if (!rule) {
        return gd_fail_nomem(err);
    }
    findings->item[findings->count] = *finding;
    findings->item[findings->count++].rule = rule;
    return GD_OK;
}

int gd_findings_add_root(struct gd_findings *findings, const struct gd_finding *finding,
                         struct gd_err *err)
{
    for (size_t i = findings->count; i-- > 0;) {
        if (findings->item[i].format != finding->format) {
            break;
        }
        if (findings->item[i].root == finding->root) {
            findings->item[i].files += finding->files;
            return GD_OK;
        }
    }
    return gd_findings_add(findings, finding, err);
}

static int add_entries(struct gd_findings *findings, const struct gd_finding *like,
                       const struct gd_listing *listing, bool directories,
                       bool (*wants)(const struct gd_listing *listing, uint32_t entry),
                       struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        struct gd_finding finding = *like;

        finding.root = i;
        finding.files = directories ? listing->entry[i].children : 1;
        if (listing->entry[i].is_directory == directories && wants(listing, i)) {
            rc = gd_findings_add(findings, &finding, err);
        }
    }
    return rc;
}

int gd_findings_add_files(struct gd_findings *findings, const struct gd_dump_format *format,
                          const struct gd_listing *listing,
                          bool (*wants)(const struct gd_listing *listing, uint32_t entry),
                          const char *rule, struct gd_err *err)
{
    const struct gd_finding like = {.format = format, .rule = rule};

    return add_entries(findings, &like, listing, false, wants, err);
}

int gd_findings_add_directories(struct gd_findings *findings, const struct gd_dump_format *format,
                                const struct gd_listing *listing,
                                bool (*wants)(const struct gd_listing *listing, uint32_t entry),
                                const char *rule, struct gd_err *err)
{
    const struct gd_finding like = {.format = format, .rule = rule};

    return add_entries(findings, &like, listing, true, wants, err);
}

void gd_findings_remove(struct gd_findings *findings, size_t index)
{
    struct gd_finding *item = &findings->item[index];

    free((char *)item->rule);
    findings->count--;
    memmove(item, item + 1, (findings->count - index) * sizeof(*item));
}

void gd_findings_clear(struct gd_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free((char *)findings->item[i].rule);
    }
    free(findings->item);
    *findings = (struct gd_findings){.item = NULL};
}
