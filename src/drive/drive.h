// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A command line run on behalf of a program: its record, its text and the events that it caused,
 * with a time limit. The protocols of this folder (MCP, DAP) are built on this.
 *
 * The REPL must have the options json and words. While a command runs, the loop runs, too: the
 * caller's input is read and may cancel the command, but not run another. One thread.
 */
#ifndef GD_DRIVE_DRIVE_H
#define GD_DRIVE_DRIVE_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "repl/core/repl.h"

struct drive;

struct drive_answer {
    int rc;             /* of the last line that ran */
    bool timed_out;     /* the time limit ended it */
    bool cancelled;     /* drive_cancel did */
    bool running;       /* the training of the current session runs */
    cJSON *record;      /* {"type":...,"command":...}: the result, or the error; never NULL */
    cJSON *events;      /* a list of records: since the last answer, in order */
    struct gd_buf text; /* the same in words, for a person */
};

struct drive_ops {
    /* While a command runs: about once a second. */
    void (*tick)(void *ctx, double seconds);
    /* A line of the training's output. */
    void (*log)(void *ctx, const char *text);
    /* A record that no command asked for ("stopped", "hit", ...), as it happens. */
    void (*event)(void *ctx, const char *type, const cJSON *record);
};

int drive_create(struct repl *repl, const struct drive_ops *ops, void *ctx, struct drive **ret,
                 struct gd_err *err);
void drive_destroy(struct drive *drive);

/* Runs one or more lines, the next only if the previous one did not fail. seconds: the time limit;
 * when it passes, a training that was resumed runs on in the background and other work is stopped.
 * Free the answer with drive_answer_free. */
void drive_run(struct drive *drive, const char *lines, double seconds, struct drive_answer *ret);
/* Waits until the training stops or ends. */
void drive_wait(struct drive *drive, double seconds, struct drive_answer *ret);
/* The events of the last answer, which did not show them, belong to the next one. */
void drive_return_events(struct drive *drive, struct drive_answer *answer);
void drive_answer_free(struct drive_answer *answer);

bool drive_is_busy(const struct drive *drive);
/* As Ctrl-C: the running command ends; a training that it resumed is stopped. */
void drive_cancel(struct drive *drive);
/* Ends the running command at once; a training that it resumed runs on. */
void drive_give_up(struct drive *drive);

/* A record for an answer that no command gave. */
void drive_fail(struct drive_answer *answer, const char *command, const struct gd_err *err);

#endif
