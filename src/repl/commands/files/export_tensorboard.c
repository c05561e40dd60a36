// SPDX-License-Identifier: GPL-3.0-or-later
/* `export tensorboard`. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/ranks.h"
#include "repl/chart/event_file.h"
#include "repl/chart/series.h"
#include "repl/commands/files/export.h"
#include "repl/out/newfile.h"
#include "repl/values/inspect.h"

struct writing {
    const struct gd_session *session;
    FILE *file;
    uint64_t series, values;
    int rc;
    struct gd_err *err;
};

static bool write_series(void *ctx, const struct series_key *key)
{
    struct writing *writing = ctx;
    struct gd_buf name = GD_BUF_INIT(1 << 14);
    struct series series;

    writing->rc = series_of(writing->session, key, &series, writing->err);
    if (writing->rc == GD_ENOTFOUND) {
        writing->rc = GD_OK;
        return true;
    }
    if (writing->rc != GD_OK) {
        return false;
    }
    out_add_safe(&name, key->label, true);
    for (size_t i = 0; i < series.count; i++) {
        if (series.bins) {
            event_file_histogram(writing->file, writing->session->began, series.point[i].step,
                                 gd_buf_text(&name), &series.bins[i]);
        } else {
            event_file_scalar(writing->file, writing->session->began, series.point[i].step,
                              gd_buf_text(&name), series.point[i].value);
        }
    }
    writing->series += series.count > 0;
    writing->values += series.count;
    series_release(&series);
    gd_buf_deinit(&name);
    return true;
}

/* With those that contain it. */
static int make_folder(struct command_call *call, const char *path, struct gd_err *err)
{
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        mkdir(inspect_printf(call, "%.*s", (int)(slash - path), path), 0777);
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return gd_fail_errno(err, GD_EIO, "cannot make the folder %.200s", path);
    }
    return GD_OK;
}

/* Both programs look for a part of the name: TensorBoard for "tfevents", MindInsight for "summary."
 * and a number. */
static int write_session(struct command_call *call, const struct gd_session *session,
                         const char *folder, struct writing *writing, struct gd_err *err)
{
    struct newfile file;
    const char *path = inspect_printf(call, "%s/events.out.tfevents.summary.%lld.gradb", folder,
                                      (long long)session->began);
    uint64_t before = writing->values;
    int rc = make_folder(call, folder, err), end;

    rc = rc != GD_OK ? rc : newfile_open(&file, path, false, err);
    if (rc != GD_OK) {
        return rc;
    }
    writing->session = session;
    writing->file = file.file;
    event_file_begin(file.file, session->began);
    series_each(session, write_series, writing);
    rc = writing->rc;
    end = newfile_close(&file, rc == GD_OK && writing->values > before, rc == GD_OK ? err : NULL);
    return rc != GD_OK ? rc : end;
}

int export_tensorboard(struct command_call *call, struct gd_err *err)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    int world = ranks ? gd_ranks_world_size(ranks) : 1, files = 0;
    struct writing writing = {.rc = GD_OK, .err = err};
    int rc = repl_check_seal(call->repl, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc == GD_OK && (call->argc != 1 || call->argv[0][0] == '\0')) {
        rc = gd_fail(err, GD_EUSAGE, "export tensorboard: specify a folder");
    }
    if (rc != GD_OK) {
        return rc;
    }
    const char *folder = inspect_home_path(call, call->argv[0]);
    rc = make_folder(call, folder, err);
    for (int i = 0; rc == GD_OK && i < world; i++) {
        const struct gd_session *session = ranks ? gd_ranks_member(ranks, i) : call->session;
        if (session) {
            rc = write_session(call, session,
                               world > 1 ? inspect_printf(call, "%s/rank_%d", folder, i) : folder,
                               &writing, err);
            files++;
        }
    }
    if (rc == GD_OK && writing.values == 0) {
        rc = gd_fail(err, GD_ENODATA,
                     "there is nothing to export: the training has reported no metrics, and no "
                     "tensor is in the history");
    }
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "exported");
    out_set(record, OUT_TEXT("file", folder), OUT_TEXT("format", "tensorboard"),
            OUT_INT("ranks", files), OUT_INT("series", writing.series),
            OUT_INT("values", writing.values));
    out_say(call->out, record, "Wrote {values|value} of {series|curve} to {file}.\n");
    return GD_OK;
}
