// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/out/logging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/repl_impl.h"

struct logging {
    FILE *file;
    char path[256];
};

static void free_logging(void *data)
{
    struct logging *logging = data;

    if (logging->file) {
        fclose(logging->file);
    }
    free(logging);
}

static int turn_on(struct command_call *call, struct gd_err *err)
{
    const struct gd_settings *settings = &call->debugger->settings;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    FILE *file = fopen(settings->logging_file, settings->logging_overwrite ? "we" : "ae");
    if (!file) {
        return gd_fail_errno(err, GD_EIO, "cannot write the log %s", settings->logging_file);
    }
    out_printf(call->out, "%s output to %s.\n",
               settings->logging_redirect ? "Redirecting" : "Copying",
               out_safe(call, settings->logging_file));
    out_flush(call->out);
    struct logging *logging =
        repl_make_slot(call->repl, REPL_SLOT_LOGGING, sizeof(*logging), free_logging);
    if (!logging) {
        fclose(file);
        return gd_fail_nomem(err);
    }
    logging->file = file;
    memcpy(logging->path, settings->logging_file, sizeof(logging->path));
    return GD_OK;
}

int logging_apply(struct command_call *call, struct gd_err *err)
{
    struct logging *logging = repl_slot(call->repl, REPL_SLOT_LOGGING);
    bool on = logging && logging->file;

    if (on == call->debugger->settings.logging) {
        return GD_OK;
    }
    if (!on) {
        return turn_on(call, err);
    }
    int failed = fclose(logging->file);
    int why = errno;
    logging->file = NULL;
    out_printf(call->out, "Done logging to %s.\n", out_safe(call, logging->path));
    errno = why;
    return failed != 0 ? gd_fail_errno(err, GD_EIO, "cannot write the log %s", logging->path)
                       : GD_OK;
}

/* Text without escape sequences. */
static void write_plain(FILE *file, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *escape = memchr(text, '\033', (size_t)(end - text));
        const char *stop = escape ? escape : end;
        fwrite(text, 1, (size_t)(stop - text), file);
        text = stop;
        while (text < end && (*text < '@' || *text == '[')) { /* up to the final letter */
            text++;
        }
        text += escape && text < end ? 1 : 0;
    }
}

bool logging_take(struct repl *repl, const char *text, size_t len, bool is_error)
{
    struct logging *logging = repl_slot(repl, REPL_SLOT_LOGGING);

    if (!logging || !logging->file || repl->front.captured) {
        return false;
    }
    write_plain(logging->file, text, len);
    if (fflush(logging->file) != 0) {
        int why = errno;
        fclose(logging->file);
        logging->file = NULL;
        repl->debugger->settings.logging = false;
        repl_printf(repl, true, "warning: cannot write the log %s: %s; logging is off\n",
                    logging->path, strerror(why));
        return false;
    }
    return repl->debugger->settings.logging_redirect && !is_error;
}
