// SPDX-License-Identifier: GPL-3.0-or-later
/* `why` at an allocation that failed. */
#include <stdlib.h>
#include <string.h>

#include "repl/commands/breakpoints/oom.h"
#include "repl/values/inspect.h"
#include "repl/values/memory.h"

#define ROWS_SHOWN 8

/* ---- what was asked for ---------------------------------------------------------------------- */

static void show_asked(struct command_call *call, const cJSON *oom)
{
    out_say(call->out, oom,
            "Asked:  [{asked:bytes}][{!asked}an unknown size][ by {node}][ (aten {operator})][, at "
            "{where}]\n"
            "        in the {phase} pass of step {step}[, micro-batch {micro_batch}][, batch of "
            "{batch}]\n");
    if (cJSON_GetArraySize(cJSON_GetObjectItem(oom, "shapes")) > 0) {
        out_say(call->out, oom, "        its inputs: {shapes}\n");
    }
    out_say(call->out, oom, "        {error}\n");
}

static void show_held(struct command_call *call, const struct gd_memory *report)
{
    struct gd_memory_total sum = gd_memory_sum(report);
    out_printf(call->out, "Held:   %s in %s%s%s\n", inspect_bytes(call, (uint64_t)sum.bytes),
               inspect_plural(call, (uint64_t)sum.count, report->unit), report->counted ? "" : ", ",
               report->counted ? "" : report->source);
    for (int kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        if (report->kind[kind].bytes > 0) {
            out_printf(call->out, "%19s  %s\n",
                       inspect_bytes(call, (uint64_t)report->kind[kind].bytes),
                       gd_memory_kind_name((enum gd_memory_kind)kind));
        }
    }
}

static void show_nodes(struct command_call *call, const cJSON *record)
{
    static const struct out_column columns[] = {
        {"bytes", "Bytes", true, ":bytes"}, {"count", "Count", true, ":n"},
        {"kind", "Kind", false, NULL},      {"name", "Name", false, ":fit40"},
        {"where", "Line", false, NULL},     {"detail", "", false, NULL}};
    out_printf(call->out, "\nWhat holds most\n");
    out_table_of(call->out, cJSON_GetObjectItem(record, "nodes"), ROWS_SHOWN, columns, 6);
}

/* ---- what would fit -------------------------------------------------------------------------- */

static void show_fit(struct command_call *call, const cJSON *record)
{
    static const struct out_column columns[] = {{"bytes", "At least", true, ":bytes"},
                                                {"seconds", "Recompute", true, ":time"},
                                                {"module", "Module", false, NULL}};
    const cJSON *fit = cJSON_GetObjectItem(record, "fit");
    const cJSON *list = cJSON_GetObjectItem(record, "checkpoints");
    out_say(call->out, fit,
            "\n[Fits:   a batch of about {fits} by {model}; {held:bytes} could be held, without "
            "the fragmentation of the allocator\n]"
            "[Fits:   unknown: {refused}\n]");
    if (cJSON_GetArraySize(list) > 0) {
        out_printf(call->out, "\nActivation checkpointing of a module would save, for a second "
                              "forward pass of it\n");
        out_table_of(call->out, list, ROWS_SHOWN, columns, 3);
    }
}

static void show_oom(struct command_call *call, cJSON *reply, const struct gd_memory *report)
{
    cJSON *record = out_record(call->out, "oom");
    cJSON *oom = cJSON_DetachItemFromObject(reply, "oom");
    out_move(record, oom);
    cJSON_Delete(oom);
    show_asked(call, record);
    memory_record(out_object(record, "memory"), report);
    cJSON *fit = cJSON_DetachItemFromObject(reply, "fit");
    cJSON *list = cJSON_DetachItemFromObject(reply, "checkpoints");
    out_set(record, OUT_IF(fit, OUT_JSON("fit", fit)), OUT_IF(list, OUT_JSON("checkpoints", list)));
    if (out_is_text(call->out)) {
        show_held(call, report);
        show_nodes(call, cJSON_GetObjectItem(record, "memory"));
        show_fit(call, record);
    }
}

/* ---- where it is known from ------------------------------------------------------------------ */

static bool says_so(const char *text)
{
    static const char *const words[] = {
        "out of memory", "can't allocate memory",  "bad_alloc",        "cannot allocate memory",
        "MemoryError",   "allocate memory failed", "memory not enough"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasestr(text, words[i])) {
            return true;
        }
    }
    return false;
}

/* A program that has no commands: what it said, and the shapes of its graph. */
static cJSON *reply_of_stop(const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    cJSON *reply = cJSON_CreateObject();
    const char *name = gd_graph_name(session->graph, stop->node);
    out_set(out_object(reply, "oom"), OUT_TEXT("error", stop->text), OUT_SOME("node", name),
            OUT_TEXT("phase", stop->phase[0] != '\0' ? stop->phase : "current"),
            OUT_INT("step", stop->step));
    out_set(out_object(reply, "fit"),
            OUT_TEXT("refused", "this program does not report what it allocates"));
    return reply;
}

static int ask_reply(struct command_call *call, cJSON **ret, struct gd_err *err)
{
    const char *text = NULL;
    bool asks = call->session->target->capabilities & GD_CAN_COMMAND;
    int rc = asks ? repl_command(call, "oom-report", "", GD_NO_NODE, &text, err) : GD_EUNSUPPORTED;
    if (rc == GD_EUNSUPPORTED) {
        *ret = reply_of_stop(call->session);
        return GD_OK;
    }
    *ret = rc == GD_OK ? cJSON_Parse(text) : NULL;
    return rc;
}

int why_oom(struct command_call *call, bool *done, struct gd_err *err)
{
    struct gd_memory report;
    cJSON *reply = NULL;
    *done = false;
    if (!gd_session_is_live(call->session) || call->session->stop.reason != GD_STOP_EXCEPTION ||
        !says_so(call->session->stop.text)) {
        return GD_OK;
    }
    int rc = ask_reply(call, &reply, err);
    if (rc != GD_OK || !cJSON_GetObjectItem(reply, "oom")) {
        cJSON_Delete(reply);
        return rc;
    }
    bool own = cJSON_GetObjectItem(reply, "kinds") != NULL;
    gd_memory_init(&report);
    rc = own ? memory_read(reply, &report, err) : memory_guess(call, &report, err);
    if (rc == GD_OK) {
        memory_place(call, &report);
        show_oom(call, reply, &report);
        *done = true;
    }
    gd_memory_deinit(&report);
    cJSON_Delete(reply);
    return rc;
}
