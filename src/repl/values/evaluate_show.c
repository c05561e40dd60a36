// SPDX-License-Identifier: GPL-3.0-or-later
/* Showing what the training process has evaluated. The reply is untrusted. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/values/evaluate.h"
#include "repl/values/evaluate_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define NAMES_SHOWN 8
#define SMALL       ((size_t)256 << 10) /* bytes of a tensor that one reply has */

/* ---- tensors --------------------------------------------------------------------------------- */

int evaluate_shape(const cJSON *reply, enum gd_dtype *dtype, struct gd_shape *shape, size_t *bytes,
                   struct gd_err *err)
{
    const cJSON *list = cJSON_GetObjectItem(reply, "shape");
    const cJSON *item;

    *dtype = gd_dtype_from_name(out_text_of(reply, "dtype"));
    *shape = (struct gd_shape){.rank = 0};
    if (*dtype == GD_DT_NONE || *dtype == GD_STRING || cJSON_GetArraySize(list) > GD_MAX_RANK) {
        return gd_fail(err, GD_EPROTO, "the training process sent a tensor of unknown form");
    }
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1e15)) {
            return gd_fail(err, GD_EPROTO, "the training process sent a tensor of unknown form");
        }
        shape->dim[shape->rank++] = (int64_t)item->valuedouble;
    }
    return gd_shape_bytes(shape, *dtype, bytes, err);
}

/* Decodes a piece to the place, at most `room` bytes. */
static int take_piece(const cJSON *reply, unsigned char *to, size_t room, size_t *taken,
                      struct gd_err *err)
{
    const char *text = out_text_of(reply, "data");
    const char *end = NULL;

    *taken = 0;
    if (sodium_base642bin(to, room, text, strlen(text), NULL, taken, &end,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        (end && *end != '\0')) {
        return gd_fail(err, GD_EPROTO, "the training process sent bytes that cannot be decoded");
    }
    return GD_OK;
}

int evaluate_small_tensor(const cJSON *reply, struct gd_tensor **ret, struct gd_err *err)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_tensor *tensor = NULL;
    size_t bytes, taken = 0;
    int rc = evaluate_shape(reply, &dtype, &shape, &bytes, err);

    if (rc == GD_OK && bytes > SMALL) {
        rc = gd_fail(err, GD_ELIMIT, "it has more than %zu KiB: print a part of it", SMALL >> 10);
    }
    rc = rc != GD_OK ? rc : gd_tensor_create(dtype, &shape, 0, &tensor, err);
    if (rc == GD_OK && bytes > 0) {
        rc = take_piece(reply, gd_tensor_bytes_mut(tensor), bytes, &taken, err);
    }
    if (rc == GD_OK && taken != bytes) {
        rc = gd_fail(err, GD_EPROTO, "the training process sent a part of the value");
    }
    if (rc == GD_OK) {
        *ret = tensor;
    } else {
        gd_tensor_unref(tensor);
    }
    return rc;
}

int evaluate_tensor(struct command_call *call, const cJSON *reply, struct gd_tensor **ret,
                    struct gd_err *err)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_tensor *tensor = NULL;
    size_t bytes, have = 0;
    int rc = evaluate_shape(reply, &dtype, &shape, &bytes, err);

    if (rc == GD_OK && bytes > call->debugger->settings.max_tensor) {
        rc = gd_fail(err, GD_ELIMIT, "the value has %s: `set max-tensor` allows %s",
                     inspect_bytes(call, bytes),
                     inspect_bytes(call, call->debugger->settings.max_tensor));
    }
    rc = rc != GD_OK ? rc : gd_tensor_create(dtype, &shape, 0, &tensor, err);
    cJSON *piece = NULL;
    while (rc == GD_OK && have < bytes) {
        size_t taken = 0;
        rc = take_piece(piece ? piece : reply, gd_tensor_bytes_mut(tensor) + have, bytes - have,
                        &taken, err);
        have += taken;
        if (rc == GD_OK && taken == 0) {
            rc = gd_fail(err, GD_EPROTO, "the training process sent a part of the value");
        }
        cJSON_Delete(piece);
        piece = NULL;
        if (rc == GD_OK && have < bytes) {
            rc = evaluate_send(call, "evaluate-bytes", inspect_printf(call, "%zu", have), &piece,
                               err);
        }
    }
    cJSON_Delete(piece);
    if (rc == GD_OK) {
        *ret = tensor;
    } else {
        gd_tensor_unref(tensor);
    }
    return rc;
}

static uint64_t count_of(const cJSON *from, const char *name)
{
    double number = out_number_of(from, name);

    return number > 0 && number < 1e18 ? (uint64_t)number : 0;
}

/* "nan", "inf" and "-inf" are texts in JSON. */
static double real_of(const cJSON *from, const char *name)
{
    const char *text = out_text_of(from, name);

    return text[0] != '\0' ? strtod(text, NULL) : out_number_of(from, name);
}

/* A tensor too large to be sent: what the training process has computed of it. */
static bool take_statistics(const cJSON *reply, struct value *value)
{
    const cJSON *from = cJSON_GetObjectItem(reply, "statistics");
    struct gd_stats *stats = &value->stats;

    if (!cJSON_IsObject(from)) {
        return false;
    }
    stats->count = count_of(from, "count");
    stats->nan = count_of(from, "nan");
    stats->pos_inf = count_of(from, "pos_inf");
    stats->neg_inf = count_of(from, "neg_inf");
    stats->zero = count_of(from, "zero");
    stats->min = real_of(from, "min");
    stats->max = real_of(from, "max");
    stats->mean = real_of(from, "mean");
    stats->std = real_of(from, "std");
    value->has_stats = true;
    return true;
}

static int show_tensor(struct command_call *call, const char *code, const cJSON *reply,
                       const struct gd_format *format, cJSON *record, struct gd_err *err)
{
    struct value value = {.label = code, .is_history = true, .step = -1, .prev_step = -1};
    size_t bytes;
    int number = 0;
    int rc = evaluate_shape(reply, &value.dtype, &value.shape, &bytes, err);

    if (rc == GD_OK && !take_statistics(reply, &value)) {
        rc = evaluate_tensor(call, reply, &value.tensor, err);
        rc = rc != GD_OK ? rc : value_fetch(call, &value, VALUE_ELEMENTS, err);
    } else if (rc == GD_OK) {
        value.note = "too many values to show: print a part of it";
    }
    if (rc == GD_OK && value.tensor) {
        number = repl_remember(call->repl, value.tensor, code);
    }
    if (rc == GD_OK) {
        out_set(record, OUT_IF(number > 0, OUT_INT("history", number)),
                OUT_SOME("about", out_text_of(reply, "about")));
        cJSON *shown = cJSON_CreateObject();
        value_record(call, &value, format, shown);
        out_move(record, shown);
        cJSON_Delete(shown);
        out_say(call->out, record, "[${history} = ]{expression}[, {about}], {place}, step {step}\n",
                OUT_TEXT("place", evaluate_place(call, reply)));
        if (out_is_text(call->out)) {
            value_print_summary(call, &value);
            if (value.note) {
                out_printf(call->out, "(%s)\n", value.note);
            }
            rc = value_print_elements(call, &value, format, err);
        }
    }
    value_deinit(&value);
    return rc;
}

/* ---- everything else ------------------------------------------------------------------------- */

static void show_lines(struct command_call *call, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *line = gd_arena_strndup(call->arena, text, len);
        out_printf(call->out, "%s\n", line ? out_safe(call, line) : "");
        text += len + (text[len] == '\n');
    }
}

static void show_output(struct command_call *call, const cJSON *reply, cJSON *record)
{
    const char *output = out_text_of(reply, "output");
    double dropped = out_number_of(reply, "dropped");

    if (output[0] != '\0') {
        out_set(record, OUT_TEXT("output", output));
        show_lines(call, output);
    }
    if (dropped > 0) {
        out_set(record, OUT_REAL("dropped", dropped));
        out_say(call->out, record, "({dropped:n} more characters of output are not shown)\n");
    }
}

static void show_text(struct command_call *call, const cJSON *reply, cJSON *record)
{
    double length = out_number_of(reply, "length");

    out_set(record, OUT_TEXT("text", out_text_of(reply, "text")),
            OUT_SOME("python_type", out_text_of(reply, "type")),
            OUT_SOME("note", out_text_of(reply, "note")),
            OUT_IF(length > 0, OUT_REAL("length", length)));
    show_lines(call, out_text_of(reply, "text"));
    out_say(call->out, record, "[({note})\n][(the first {shown:n} of {length:n} characters)\n]",
            OUT_INT("shown", strlen(out_text_of(reply, "text"))));
}

/* "a, b and 7 more" */
static void add_changed(const cJSON *changed, struct gd_buf *names)
{
    int count = cJSON_GetArraySize(changed), at = 0;
    const cJSON *item;

    cJSON_ArrayForEach(item, changed)
    {
        if (at++ < NAMES_SHOWN) {
            gd_buf_printf(names, "%s%.200s", at > 1 ? ", " : "",
                          cJSON_IsString(item) ? item->valuestring : "");
        }
    }
    if (count > NAMES_SHOWN) {
        gd_buf_printf(names, " and %d more", count - NAMES_SHOWN);
    }
}

int evaluate_note_changes(struct gd_session *session, const char *code, const cJSON *reply)
{
    const cJSON *changed = cJSON_GetObjectItem(reply, "changed");
    int count = cJSON_GetArraySize(changed);
    struct gd_buf names = GD_BUF_INIT(8192), text = GD_BUF_INIT(8192);

    if (count > 0) {
        add_changed(changed, &names);
        gd_buf_printf(&text, "%.400s changed %.400s", code, gd_buf_text(&names));
        gd_session_changed(session, gd_buf_text(&text));
        gd_session_forget_values(session);
    }
    gd_buf_deinit(&names);
    gd_buf_deinit(&text);
    return count;
}

/* What the code changed: the run is no longer as the script alone would make it. */
static void show_changes(struct command_call *call, const char *code, const cJSON *reply,
                         cJSON *record)
{
    const cJSON *changed = cJSON_GetObjectItem(reply, "changed");
    struct gd_buf names = GD_BUF_INIT(8192);
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "notes"))
    {
        out_printf(call->out, "(%s)\n",
                   out_safe(call, cJSON_IsString(item) ? item->valuestring : ""));
    }
    if (evaluate_note_changes(call->session, code, reply) == 0) {
        return;
    }
    cJSON *list = out_list(record, "changed");
    cJSON_ArrayForEach(item, changed)
    {
        out_push_text(list, cJSON_IsString(item) ? item->valuestring : "");
    }
    add_changed(changed, &names);
    out_printf(call->out, "Changed by hand: %s\n", out_safe(call, gd_buf_text(&names)));
    gd_buf_deinit(&names);
}

int evaluate_show(struct command_call *call, const char *code, const cJSON *reply,
                  const struct gd_format *format, struct gd_err *err)
{
    const char *kind = out_text_of(reply, "kind");
    cJSON *record = out_record(call->out, "evaluation");
    int rc = GD_OK;

    out_set(record, OUT_TEXT("expression", code), OUT_TEXT("kind", kind),
            OUT_INT("step", gd_session_step(call->session)));
    const cJSON *frame = cJSON_GetObjectItem(reply, "frame");
    out_set(record, OUT_IF(frame, OUT_JSON("frame", cJSON_Duplicate(frame, true))));
    show_output(call, reply, record);
    if (strcmp(kind, "tensor") == 0) {
        rc = show_tensor(call, code, reply, format, record, err);
    } else if (strcmp(kind, "text") == 0) {
        show_text(call, reply, record);
    }
    show_changes(call, code, reply, record);
    if (rc == GD_OK && strcmp(kind, "error") == 0) {
        const char *where = out_text_of(reply, "where"), *text = out_text_of(reply, "text");
        rc = gd_fail(err,
                     cJSON_IsTrue(cJSON_GetObjectItem(reply, "interrupted")) ? GD_EINTR : GD_EINVAL,
                     "%.900s%s%.200s%s", text[0] ? out_safe(call, text) : "it raised an exception",
                     where[0] ? " (" : "", out_safe(call, where), where[0] ? ")" : "");
    }
    return rc;
}
