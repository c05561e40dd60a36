// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/format.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define MAX_FINDINGS 100000

const struct gd_dump_format *const gd_dump_formats[] = {
    &gd_overflow_format,
    &gd_msprobe_format,
    &gd_ptdbg_format,
    &gd_api_info_format,
    &gd_grad_probe_format,
    &gd_monitor_format,
    &gd_atb_table_format,
    &gd_ms_sync_format,
    &gd_ms_bin_format,
    &gd_cann_format,
    &gd_tf_ascend_format,
    &gd_tensor_files_format,
    &gd_rdr_format,
    &gd_ms_ir_format,
    &gd_glog_format,
    &gd_results_format,
    NULL,
};

const struct gd_archive_format *const gd_archive_formats[] = {
    &gd_npy_format,     &gd_torch_format,        &gd_npz_format,       &gd_safetensors_format,
    &gd_sharded_format, &gd_torch_legacy_format, &gd_torch_tar_format, &gd_ms_ckpt_format,
    &gd_atb_format,     &gd_torch_dcp_format,    &gd_pickle_format,    NULL,
};

const struct gd_dump_format *gd_dump_format_find(const char *name)
{
    for (size_t i = 0; gd_dump_formats[i]; i++) {
        if (strcmp(gd_dump_formats[i]->name, name) == 0) {
            return gd_dump_formats[i];
        }
    }
    return NULL;
}

int gd_findings_add(struct gd_findings *findings, const struct gd_finding *finding,
                    struct gd_err *err)
{
    struct gd_finding *items;
    char *rule;

    if (findings->count == MAX_FINDINGS) {
        return gd_fail(err, GD_ELIMIT, "the directory contains more than %d dumps", MAX_FINDINGS);
    }
    items = gd_grow(findings->item, findings->count, &findings->cap, sizeof(*items));
    if (!items) {
        return gd_fail_nomem(err);
    }
    findings->item = items;
    rule = strdup(finding->rule ? finding->rule : "");
    if (!rule) {
        return gd_fail_nomem(err);
    }
    items[findings->count] = *finding;
    items[findings->count++].rule = rule;
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

void gd_findings_clear(struct gd_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free((char *)findings->item[i].rule);
    }
    free(findings->item);
    *findings = (struct gd_findings){.item = NULL};
}
