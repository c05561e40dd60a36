// SPDX-License-Identifier: GPL-3.0-or-later
/* `> FILE` and `>> FILE`: redirects a command's output. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "repl/core/repl_impl.h"

/* Opens a new file next to the target, to be renamed when the command is done: an interrupted
 * command or a full disk leaves no partial file. NULL: the target must be written in place, because
 * a new file cannot replace it (a device, a pipe, a link, several names, another owner) or cannot
 * be created. */
static FILE *open_part(struct repl_out *out, const char *path)
{
    struct stat there;
    bool exists = lstat(path, &there) == 0;
    size_t size = strlen(path) + sizeof(".part");
    char *part = gd_arena_alloc(out->arena, size);

    bool replaceable = !exists || (S_ISREG(there.st_mode) && there.st_nlink == 1 &&
                                   there.st_uid == geteuid() && access(path, W_OK) == 0);

    if (!part || !replaceable) {
        return NULL;
    }
    snprintf(part, size, "%s.part", path);
    FILE *file = fopen(part, "wxe"); /* never overwrites a file */
    if (!file) {
        return NULL;
    }
    if (exists && fchmod(fileno(file), there.st_mode & 07777) != 0) {
        fclose(file);
        unlink(part);
        return NULL;
    }
    out->sink_part = part;
    return file;
}

int out_redirect(struct repl_out *out, const char *path, bool append, struct gd_err *err)
{
    int rc = repl_check_seal(out->repl, err);
    struct stat now;

    if (rc != GD_OK) {
        return rc;
    }
    out->sink_path = path;
    out->sink = append ? NULL : open_part(out, path);
    if (!out->sink) {
        out->sink = fopen(path, append ? "ae" : "we");
    }
    if (!out->sink) {
        return gd_fail_errno(err, GD_EIO, "cannot write to %s", path);
    }
    bool regular = fstat(fileno(out->sink), &now) == 0 && S_ISREG(now.st_mode);
    out->sink_size = regular ? (int64_t)now.st_size : -1;
    return GD_OK;
}

/* Undoes the writing. False: impossible. */
static bool drop_output(struct repl_out *out)
{
    fclose(out->sink);
    if (out->sink_part) {
        unlink(out->sink_part);
        return true;
    }
    return out->sink_size < 0 || truncate(out->sink_path, (off_t)out->sink_size) == 0;
}

int out_close_sink(struct repl_out *out, bool failed, struct gd_err *err)
{
    bool bad = out->sink_failed || fflush(out->sink) != 0 || ferror(out->sink) != 0;
    int why = errno;

    if (failed || bad) {
        if (!drop_output(out) && !bad) {
            bad = true;
            why = errno;
        }
    } else if (fclose(out->sink) != 0 ||
               (out->sink_part && rename(out->sink_part, out->sink_path) != 0)) {
        bad = true;
        why = errno;
        if (out->sink_part) {
            unlink(out->sink_part);
        }
    }
    out->sink = NULL;
    errno = why;
    return bad ? gd_fail_errno(err, GD_EIO, "cannot write the output to %s", out->sink_path)
               : GD_OK;
}
