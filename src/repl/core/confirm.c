// SPDX-License-Identifier: GPL-3.0-or-later
/* Questions to the user before something is lost. */
#include <stdarg.h>
#include <sys/stat.h>

#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

bool repl_can_ask(const struct repl *repl)
{
    return !repl->options.batch && !repl->options.json && repl->options.interactive &&
           repl->front.ask;
}

int repl_may_replace(struct command_call *call, const char *path, bool force, bool *ret,
                     struct gd_err *err)
{
    struct stat there;

    *ret = true;
    if (force || !call->debugger->settings.confirm || stat(path, &there) != 0 ||
        !S_ISREG(there.st_mode)) {
        return GD_OK;
    }
    if (!repl_can_ask(call->repl)) {
        return gd_fail(err, GD_ESTATE, "%.300s exists: replace it with %s -f", path,
                       call->command->name);
    }
    *ret = repl_confirm(call, "%s exists. Replace it?", path);
    return GD_OK;
}

bool repl_confirm(struct command_call *call, const char *format, ...)
{
    struct repl *repl = call->repl;
    struct gd_buf question = GD_BUF_INIT(4096);
    va_list args;

    if (!repl_can_ask(repl) || !repl->debugger->settings.confirm) {
        return true;
    }
    out_flush(call->out);
    va_start(args, format);
    gd_buf_vprintf(&question, format, args);
    va_end(args);
    bool yes = repl->front.ask(repl->front.ask_ctx, out_safe(call, gd_buf_text(&question)));
    gd_buf_deinit(&question);
    return yes;
}
