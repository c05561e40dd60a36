// SPDX-License-Identifier: GPL-3.0-or-later
/* `save TENSOR|SELECTOR FILE`: as .npy or .npz. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/files/tensor_writer.h"
#include "repl/commands/data/save.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

static int check_types(const struct saving *s, struct gd_err *err)
{
    if (s->kind == GD_FILE_NPY && s->count > 1) {
        return gd_fail(err, GD_EINVAL,
                       "%zu tensors do not fit into one .npy file: use .npz or .safetensors",
                       s->count);
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct saved *item = &s->item[i];
        if (item->dtype != GD_DT_NONE && !gd_tensor_file_holds(s->kind, item->dtype)) {
            return gd_fail(err, GD_EUNSUPPORTED, "%.200s is %s, which %s cannot hold", item->name,
                           gd_dtype_name(item->dtype),
                           s->kind == GD_FILE_SAFETENSORS ? "safetensors (an .npz can)"
                                                          : "a numpy file");
        }
    }
    return GD_OK;
}

static void report_cleaned(struct saving *s)
{
    out_say(s->call->out, NULL,
            "[{cleaned|tensor} renamed, as the name is not safe in a file: {dirty} is "
            "{clean}[{?several}, ...]\n]",
            OUT_INT("cleaned", s->cleaned), OUT_TEXT("dirty", s->dirty),
            OUT_TEXT("clean", s->clean), OUT_BOOL("several", s->cleaned > 1));
}

static void report_one(struct saving *s, const char *path)
{
    struct command_call *call = s->call;
    struct value *value = &s->item[0].value;
    cJSON *record = out_record(call->out, "saved");
    out_set(record, OUT_TEXT("file", path));
    value_record(call, value, NULL, record);
    out_say(call->out, record,
            "Saved {title}, {dtype} {shape:shape}, to {file}"
            "[{?as_bits} (as the bits: numpy has no bfloat16)]\n",
            OUT_TEXT("title", value_title(call, value)), OUT_BOOL("as_bits", s->as_bits));
    report_cleaned(s);
}

static void report_many(struct saving *s, const char *path)
{
    struct command_call *call = s->call;
    cJSON *record = out_record(call->out, "saved");
    out_set(record, OUT_TEXT("file", path), OUT_INT("count", s->written), OUT_INT("bytes", s->done),
            OUT_INT("missing", s->missing), OUT_INT("renamed", s->renamed),
            OUT_INT("of_other_steps", s->old), OUT_INT("cleaned", s->cleaned));
    out_say(call->out, record,
            "Saved {count|tensor}, {bytes:bytes}, to {file}"
            "[{?as_bits} (bfloat16 as its bits: numpy has no such type)]\n"
            "[{renamed|tensor} renamed: a number was appended to a duplicate name\n]"
            "[{of_other_steps|tensor} {are} not of step {step}, at which the session is stopped\n]",
            OUT_BOOL("as_bits", s->as_bits), OUT_TEXT("are", s->old == 1 ? "is" : "are"),
            OUT_TEXT("step", s->old
                                 ? inspect_printf(call, "%lld", (long long)call->session->stop.step)
                                 : ""));
    report_cleaned(s);
    out_say(call->out, record, "[{missing|tensor} {have} no value; the first: {why}\n]",
            OUT_TEXT("have", s->missing == 1 ? "has" : "have"), OUT_TEXT("why", s->why));
}

/* The last part of the name without characters unsuitable for a file: "fc1.weight_0_3". */
static const char *file_name(struct command_call *call, const char *label, const char *mode,
                             const char *end)
{
    const char *slash = strrchr(label, '/'), *from = slash && slash[1] ? slash + 1 : label;
    size_t len = 0, room = strlen(from) + strlen(mode) + strlen(end) + 2;
    char *name = gd_arena_alloc(call->arena, room);

    for (; name && *from; from++) {
        bool good = isalnum((unsigned char)*from) || strchr("._-", *from);
        if (good || (len > 0 && name[len - 1] != '_')) {
            name[len++] = good ? *from : '_';
        }
    }
    while (name && len > 0 && name[len - 1] == '_') {
        len--;
    }
    if (name) {
        snprintf(name + len, room - len, "%s%s%s", mode[0] ? "." : "", mode, end);
    }
    return name;
}

const char *save_name(struct command_call *call, const char *mode)
{
    const char *text = call->argc > 0 ? call->argv[0] : NULL;
    struct gd_node_info info;
    struct value value;

    if (value_parse(call, text, &value, NULL) != GD_OK) {
        return file_name(call, text ? text : "tensors", mode, ".npz");
    }
    gd_node_id node = value.arg.ref.node;
    bool one = !value.is_history && value.arg.slice.count == 0 &&
               gd_graph_node(call->session->graph, node, &info) && info.output_count <= 1;
    const char *name = file_name(call, one ? info.name : value.label, mode, ".npy");
    value_deinit(&value);
    return name;
}

int save_tensors(struct command_call *call, const char *path, enum value_which which, bool force,
                 struct gd_err *err)
{
    struct saving s = {.call = call, .kind = gd_tensor_file_of(path)};
    int rc = repl_check_seal(call->repl, err);
    rc = rc != GD_OK ? rc : save_collect(&s, which, err);
    rc = rc != GD_OK ? rc : check_types(&s, err);
    rc = rc != GD_OK ? rc : save_clean_names(&s, err);
    rc = rc != GD_OK ? rc : save_part_names(&s, err);
    bool may = true;
    rc = rc != GD_OK ? rc : repl_may_replace(call, path, force, &may, err);
    if (rc == GD_OK && !may) {
        out_printf(call->out, "Not saved.\n");
    } else if (rc == GD_OK) {
        if (s.count > 1) {
            qsort(s.item, s.count, sizeof(*s.item), save_by_size);
        }
        rc = save_write_file(&s, path, err);
        if (rc == GD_OK) {
            (s.count == 1 ? report_one : report_many)(&s, path);
        }
    }
    for (size_t i = 0; i < s.count; i++) {
        value_deinit(&s.item[i].value);
    }
    free(s.item);
    return rc;
}
