// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/format.h"

#include <string.h>

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
    &gd_memory_snapshot_format,
    &gd_memory_timeline_format,
    &gd_profile_format,
    &gd_rank_profile_format,
    &gd_trace_format,
    &gd_tensor_files_format,
    &gd_rdr_format,
    &gd_ms_ir_format,
    &gd_glog_format,
    &gd_loss_log_format,
    &gd_results_format,
    NULL,
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
