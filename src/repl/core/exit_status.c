// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/exit_status.h"

#include "repl/core/repl_impl.h"

enum exit_status exit_status_after(enum exit_status so_far, enum exit_status next)
{
    switch (next) {
    case STATUS_OK: return so_far;
    case STATUS_WATCHPOINT: return so_far == STATUS_OK ? next : so_far;
    case STATUS_TRAINING_FAILED:
    case STATUS_DIFFERS: return so_far == STATUS_OK || so_far == STATUS_WATCHPOINT ? next : so_far;
    case STATUS_FAILED:
        return so_far == STATUS_OK || so_far == STATUS_WATCHPOINT || so_far == STATUS_DIFFERS
                   ? next
                   : so_far;
    default: return next; /* no connection, a signal */
    }
}

void repl_add_status(struct repl *repl, enum exit_status status)
{
    repl->end.status = exit_status_after(repl->end.status, status);
}

void repl_set_failed(struct repl *repl, int rc)
{
    repl_add_status(repl, rc == GD_EINTR                       ? STATUS_INTERRUPTED
                          : repl->end.fail_status != STATUS_OK ? repl->end.fail_status
                                                               : STATUS_FAILED);
    repl->end.fail_status = STATUS_OK;
}

void repl_training_failed(struct repl *repl)
{
    if (!repl->end.closing && !repl->job.muted) {
        repl_add_status(repl, STATUS_TRAINING_FAILED);
    }
}
