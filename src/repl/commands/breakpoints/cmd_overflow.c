// SPDX-License-Identifier: GPL-3.0-or-later
/* Overflows: operators with finite inputs whose output is infinite or NaN. The training program
 * finds them, keeps their calls and makes them again; here is how it is asked. catch overflow,
 * overflow record, info overflows, rerun, save overflow. */
#include <string.h>

#include "base/buf.h"
#include "dump/dump_target.h"
#include "repl/core/commands.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

#define COMMAND   "overflow" /* of the program: "stop 3", "record 3 DIR", "off", "save 1 DIR", "" */
#define MAX_WORDS ((size_t)16384)

/* ---- asking the program ---------------------------------------------------------------------- */

static int need_commands(struct command_call *call, struct gd_err *err)
{
    if (!call->session->target || !(call->session->target->capabilities & GD_CAN_COMMAND)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this training program does not look for overflows; \"watch TO on all\" "
                       "finds outputs that are not finite");
    }
    return GD_OK;
}

/* The caller deletes *ret, also after a failure. */
static int read_reply(const char *text, cJSON **ret, struct gd_err *err)
{
    *ret = cJSON_Parse(text);
    return cJSON_IsObject(*ret) ? GD_OK
                                : gd_fail(err, GD_EPROTO, "the program's answer cannot be read");
}

/* The session's answer. */
static int ask(struct command_call *call, const char *name, const char *args, cJSON **ret,
               struct gd_err *err)
{
    const char *text = NULL;
    int rc = need_commands(call, err);
    if (rc == GD_OK) {
        rc = repl_command(call, name, args, GD_NO_NODE, &text, err);
    }
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

/* Every process of the training is told; the selected one's answer counts. */
static int ask_all(struct command_call *call, const char *args, cJSON **ret, struct gd_err *err)
{
    const char *text = NULL;
    int rc = need_commands(call, err);
    if (rc == GD_OK) {
        rc = everyone_command(call, COMMAND, args, &text, err);
    }
    return rc == GD_OK ? read_reply(text, ret, err) : rc;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text ? text : "";
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* A word as the program splits it again. */
static void add_word(struct gd_buf *out, const char *word)
{
    gd_buf_puts(out, out->len > 0 ? " '" : "'");
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '\'') {
            gd_buf_puts(out, "'\"'\"'");
        } else {
            gd_buf_putc(out, *p);
        }
    }
    gd_buf_putc(out, '\'');
}

/* `first` and the words of the line behind it. */
static const char *words_of(struct command_call *call, const char *first, int from)
{
    struct gd_buf text = GD_BUF_INIT(MAX_WORDS);
    if (first[0] != '\0') {
        add_word(&text, first);
    }
    for (int i = from; i < call->argc; i++) {
        add_word(&text, call->argv[i]);
    }
    const char *words = gd_arena_strdup(call->arena, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return words ? words : "";
}

/* ---- what there is --------------------------------------------------------------------------- */

static void add_bad(const cJSON *tensor, struct gd_buf *out)
{
    static const char *const names[][2] = {{"nan", "nan"}, {"pos_inf", "inf"}, {"neg_inf", "-inf"}};
    size_t before = out->len;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        double count = number_of(tensor, names[i][0]);
        if (count > 0) {
            gd_buf_printf(out, "%s%.0f %s", out->len > before ? ", " : "", count, names[i][1]);
        }
    }
}

/* "11 -inf of 64"; "finite, 0 ... 7e+04" */
static const char *tensor_text(struct command_call *call, const cJSON *tensor)
{
    struct gd_buf text = GD_BUF_INIT(1024);
    const cJSON *min = cJSON_GetObjectItem(tensor, "min");
    const cJSON *max = cJSON_GetObjectItem(tensor, "max");
    add_bad(tensor, &text);
    if (text.len > 0) {
        gd_buf_printf(&text, " of %.0f", number_of(tensor, "count"));
    } else if (cJSON_IsNumber(min) && cJSON_IsNumber(max)) {
        gd_buf_printf(&text, "%.6g ... %.6g", min->valuedouble, max->valuedouble);
    } else {
        gd_buf_puts(&text, "?");
    }
    const char *copy = out_safe(call, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return copy;
}

/* All tensors of a list, "0 ... 1, 7 ... 9". */
static const char *tensors_text(struct command_call *call, const cJSON *list)
{
    const char *text = "";
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (++count > 3) {
            return inspect_printf(call, "%s; ...", text);
        }
        text = inspect_printf(call, "%s%s%s", text, count > 1 ? "; " : "", tensor_text(call, item));
    }
    return text;
}

/* Its flags, and the verdict of rerun. */
static const char *remarks(struct command_call *call, const cJSON *entry)
{
    const char *text = text_of(entry, "verdict");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(entry, "flags"))
    {
        text = inspect_printf(call, "%s%s%s", text, text[0] ? ", " : "",
                              cJSON_IsString(item) ? item->valuestring : "");
    }
    if (number_of(entry, "times") > 1) {
        text = inspect_printf(call, "%s (%.0f times)", text, number_of(entry, "times"));
    }
    return out_safe(call, text);
}

/* It did as it was told, as a mask of -inf does. */
static bool is_intended(const cJSON *entry)
{
    const cJSON *flag;
    cJSON_ArrayForEach(flag, cJSON_GetObjectItem(entry, "flags"))
    {
        if (cJSON_IsString(flag) && strcmp(flag->valuestring, "intended") == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_intended(const cJSON *entries)
{
    size_t count = 0;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, entries)
    {
        count += is_intended(entry);
    }
    return count;
}

static void list_table(struct command_call *call, const cJSON *entries, bool all)
{
    static const struct out_column columns[] = {
        {"number", "Num", true},    {"step", "Step", true},  {"phase", "Phase", false},
        {"node", "Node", false},    {"line", "Line", false}, {"inputs", "Given", false},
        {"outputs", "Made", false}, {"remarks", "", false}};
    struct out_table *table = out_table_begin(call->out, "rows", columns, 8);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, entries)
    {
        if (!all && is_intended(entry)) {
            continue;
        }
        const char *cells[] = {inspect_printf(call, "%.0f", number_of(entry, "number")),
                               inspect_printf(call, "%.0f", number_of(entry, "step")),
                               out_safe(call, text_of(entry, "phase")),
                               inspect_fit(call, text_of(entry, "node"), 60),
                               out_safe(call, text_of(entry, "line")),
                               tensors_text(call, cJSON_GetObjectItem(entry, "inputs")),
                               tensors_text(call, cJSON_GetObjectItem(entry, "outputs")),
                               remarks(call, entry)};
        out_table_row(table, cells);
    }
    out_table_end(table);
    cJSON_ArrayForEach(entry, entries)
    {
        const char *folder = text_of(entry, "folder"), *note = text_of(entry, "note");
        if (folder[0] != '\0' || note[0] != '\0') {
            out_printf(call->out, "%.0f: %s\n", number_of(entry, "number"),
                       out_safe(call, folder[0] != '\0' ? folder : note));
        }
    }
}

static void state_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *stop = cJSON_GetObjectItem(reply, "stop");
    double stops = number_of(reply, "stop"), records = number_of(reply, "record");
    if (cJSON_IsString(stop)) {
        out_printf(call->out, "The training stops at each overflow.\n");
    } else if (stops > 0) {
        out_printf(call->out, "The training stops at the next %s.\n",
                   stops > 1 ? inspect_printf(call, "%.0f overflows", stops) : "overflow");
    }
    if (records > 0) {
        out_printf(call->out, "The next %s written below %s\n",
                   records > 1 ? inspect_printf(call, "%.0f overflows are", records)
                               : "overflow is",
                   out_safe(call, text_of(reply, "folder")));
    }
    if (!cJSON_IsString(stop) && stops <= 0 && records <= 0) {
        out_printf(call->out, "Overflows are not looked for.\n");
    }
}

/* Where NaN came from that no operator made. */
static void hint_text(struct command_call *call, const cJSON *hint)
{
    if (cJSON_IsObject(hint)) {
        out_printf(call->out, "In step %.0f %s was given NaN that no operator made: %s\n",
                   number_of(hint, "step"), out_safe(call, text_of(hint, "node")),
                   out_safe(call, text_of(hint, "given")));
    }
}

/* Moves the reply's members into the record. */
static void take_members(cJSON *record, cJSON *reply)
{
    while (reply->child) {
        cJSON *item = cJSON_DetachItemViaPointer(reply, reply->child);
        cJSON_AddItemToObject(record, item->string, item);
    }
}

enum listing { LIST_NONE, LIST_FOUND, LIST_ALL };

/* An agent of before does not count them. */
static void none_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *looked = cJSON_GetObjectItem(reply, "looked");
    double count = number_of(reply, "looked");
    if (!cJSON_IsNumber(looked)) {
        out_printf(call->out, "None was found; how many operators were looked at is not known.\n");
    } else if (count > 0) {
        out_printf(call->out, "None was found: %s looked at.\n",
                   inspect_plural(call, (uint64_t)count, "operator"));
    } else {
        out_printf(call->out, "No operator was looked at yet.\n");
    }
}

static void list(struct command_call *call, const cJSON *reply, bool all)
{
    const cJSON *entries = cJSON_GetObjectItem(reply, "overflows");
    size_t intended = count_intended(entries);
    bool any = (size_t)cJSON_GetArraySize(entries) > (all ? 0 : intended);
    if (any) {
        list_table(call, entries, all);
    } else {
        none_text(call, reply);
    }
    if (!all && intended > 0) {
        out_printf(call->out,
                   "%s not shown that did as told, as masks of -inf do (info overflows -a)\n",
                   inspect_plural(call, intended, "operator"));
    }
}

static void show(struct command_call *call, cJSON *reply, enum listing listing)
{
    if (out_is_json(call->out)) {
        take_members(out_record(call->out, "overflows"), reply);
        return;
    }
    state_text(call, reply);
    if (listing != LIST_NONE) {
        list(call, reply, listing == LIST_ALL);
        hint_text(call, cJSON_GetObjectItem(reply, "hint"));
    }
}

/* ---- the commands ---------------------------------------------------------------------------- */

int inspect_info_overflows(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    bool all = inspect_take_flag(call, "-a");
    if (call->session && gd_catalog_of(call->session)) { /* the device wrote them down */
        return inspect_info_events(call, err);
    }
    int rc = ask(call, COMMAND, "", &reply, err);
    if (rc == GD_OK) {
        show(call, reply, all ? LIST_ALL : LIST_FOUND);
    }
    cJSON_Delete(reply);
    return rc;
}

static int arm(struct command_call *call, const char *words, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = ask_all(call, words, &reply, err);
    if (rc == GD_OK) {
        show(call, reply, LIST_NONE);
    }
    cJSON_Delete(reply);
    return rc;
}

int cmd_catch_overflow(struct command_call *call, bool temporary, struct gd_err *err)
{
    const char *rest = call->line;
    int64_t count = temporary ? 1 : 0;
    int rc = inspect_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (temporary && rest[0] != '\0') {
        return gd_fail(err, GD_EUSAGE, "tcatch overflow takes nothing more");
    }
    if (rest[0] != '\0' && (rc = arg_count(rest, 1, INT32_MAX, &count, err)) != GD_OK) {
        return rc;
    }
    return arm(call, count > 0 ? inspect_printf(call, "stop %lld", (long long)count) : "stop", err);
}

static int run_record(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    if (call->argc < 1 || call->argc > 2) {
        return gd_fail(err, GD_EUSAGE, "overflow record wants a number of overflows");
    }
    int rc = arg_count(call->argv[0], 1, INT32_MAX, &count, err);
    return rc != GD_OK ? rc : arm(call, words_of(call, "record", 0), err);
}

static int run_stop(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "overflow stop wants a number of overflows, or nothing");
    }
    int rc = call->argc ? arg_count(call->argv[0], 1, INT32_MAX, &count, err) : GD_OK;
    return rc != GD_OK ? rc : arm(call, words_of(call, "stop", 0), err);
}

static int run_off(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 0) {
        return gd_fail(err, GD_EUSAGE, "overflow off takes nothing more");
    }
    return arm(call, "off", err);
}

static int run_overflow(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 0) {
        return gd_fail(err, GD_EUSAGE, "overflow knows no \"%.100s\"",
                       out_safe(call, call->argv[0]));
    }
    return inspect_info_overflows(call, err);
}

int cmd_save_overflow(struct command_call *call, const char *which, const char *folder,
                      struct gd_err *err)
{
    cJSON *reply = NULL;
    struct gd_buf words = GD_BUF_INIT(MAX_WORDS);
    int rc = inspect_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    add_word(&words, "save");
    add_word(&words, which);
    add_word(&words, folder);
    rc = ask(call, COMMAND, gd_buf_text(&words), &reply, err);
    gd_buf_deinit(&words);
    if (rc == GD_OK) {
        const char *path = text_of(reply, "saved");
        cJSON *record = out_record(call->out, "saved");
        inspect_add_text(call, record, "file", path);
        cJSON_AddNumberToObject(record, "count", 1);
        out_printf(call->out, "Saved to %s; \"python -m gradb.rerun %s\" makes it again.\n",
                   out_safe(call, path), out_safe(call, path));
    }
    cJSON_Delete(reply);
    return rc;
}

static void run_text(struct command_call *call, const cJSON *run)
{
    const char *error = text_of(run, "error");
    const cJSON *outputs = cJSON_GetObjectItem(run, "outputs");
    out_printf(call->out, "  %-22s  %s\n", out_safe(call, text_of(run, "as")),
               error[0] != '\0' ? out_safe(call, error) : tensors_text(call, outputs));
}

static const char *value_text(struct command_call *call, const cJSON *value)
{
    if (cJSON_IsNumber(value)) {
        return inspect_printf(call, "%.6g", value->valuedouble);
    }
    return cJSON_IsString(value) ? out_safe(call, value->valuestring) : "?";
}

/* "  output 0 at [0, 3]: -inf, in float64 -inf; input.0 is 0" */
static void place_text(struct command_call *call, const cJSON *place)
{
    struct gd_buf text = GD_BUF_INIT(65536);
    const cJSON *item, *value = cJSON_GetObjectItem(place, "value");
    const cJSON *wide = cJSON_GetObjectItem(place, "float64");
    const char *between = "";
    gd_buf_printf(&text, "  output %.0f at [", number_of(place, "output"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(place, "index"))
    {
        gd_buf_printf(&text, "%s%.0f", between, item->valuedouble);
        between = ", ";
    }
    gd_buf_printf(&text, "]: %s", value_text(call, value));
    if (wide) {
        gd_buf_printf(&text, ", in float64 %s", value_text(call, wide));
    }
    between = ";";
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(place, "inputs"))
    {
        gd_buf_printf(&text, "%s %s is %s", between, text_of(item, "argument"),
                      value_text(call, cJSON_GetObjectItem(item, "value")));
        between = ",";
    }
    out_printf(call->out, "%s\n", out_safe(call, gd_buf_text(&text)));
    gd_buf_deinit(&text);
}

static void rerun_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *item;
    const char *line = text_of(reply, "line");
    out_printf(call->out, "Overflow %.0f, step %.0f, %s: %s%s%s%s\n", number_of(reply, "number"),
               number_of(reply, "step"), out_safe(call, text_of(reply, "node")),
               out_safe(call, text_of(reply, "operator")), line[0] ? " (" : "",
               out_safe(call, line), line[0] ? ")" : "");
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "runs"))
    {
        run_text(call, item);
    }
    const char *verdict = text_of(reply, "verdict");
    const char *word = strcmp(verdict, "inherent") == 0 ? "Inherent"
                       : strcmp(verdict, "dtype") == 0  ? "A matter of the type"
                       : strcmp(verdict, "device") == 0 ? "A matter of the device"
                                                        : "Not known";
    out_printf(call->out, "%s: %s\n", word, out_safe(call, text_of(reply, "text")));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "places"))
    {
        place_text(call, item);
    }
}

static int run_rerun(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "rerun wants one overflow's number or node");
    }
    int rc = ask(call, "rerun", call->argc > 0 ? call->argv[0] : "", &reply, err);
    if (rc == GD_OK && out_is_json(call->out)) {
        take_members(out_record(call->out, "rerun"), reply);
    } else if (rc == GD_OK) {
        rerun_text(call, reply);
    }
    cJSON_Delete(reply);
    return rc;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define NEEDS (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

static const struct command overflow_subs[] = {
    {.name = "record",
     .usage = "overflow record N [DIR]",
     .summary = "Write the next N overflows below a folder, and go on",
     .help =
         "DIR is a folder where the training runs; ./gradb-overflow when there is none named.\n"
         "Each overflow gets a folder of its own: forward_info.json or backward_info.json with\n"
         "the call, a .npy file for each tensor, and where it was called.\n"
         "\n"
         "  overflow record 3\n  overflow record 10 /data/overflows\n",
     .args = {ARG_WORD, ARG_FILE},
     .flags = NEEDS,
     .run = run_record},
    {.name = "stop",
     .usage = "overflow stop [N]",
     .summary = "Stop at the next N overflows, or at each: what catch overflow does",
     .help = "  overflow stop\n  overflow stop 2\n",
     .args = {ARG_WORD},
     .flags = NEEDS,
     .run = run_stop},
    {.name = "off",
     .usage = "overflow off",
     .summary = "Look for overflows no more",
     .help = "What was found stays listed.\n  overflow off\n",
     .flags = NEEDS,
     .run = run_off},
    {.name = NULL},
};

const struct command cmd_overflow_table[] = {
    {.name = "overflow",
     .group = "breakpoints",
     .usage = "overflow [record N [DIR] | stop [N] | off]",
     .summary = "Find operators with finite inputs whose output is infinite or NaN",
     .help = "The training looks at the output of each operator, forward, backward and optimizer,\n"
             "and where it is not finite at the inputs. Stopping at one is \"catch overflow\";\n"
             "\"overflow record\" writes their calls and goes on. Operators that are given an\n"
             "infinity, such as masked_fill with -inf, do as they are told: nothing stops at\n"
             "them, and \"info overflows -a\" alone lists them, as \"intended\". Without a word:\n"
             "what \"info overflows\" tells. All ranks are told.\n"
             "PyTorch programs can.\n"
             "\n"
             "  overflow\n",
     .args = {ARG_SUBCOMMAND},
     .flags = NEEDS,
     .run = run_overflow,
     .sub = overflow_subs},
    {.name = "rerun",
     .group = "data",
     .usage = "rerun [N | NODE]",
     .summary = "Make the call of an overflow again, on the CPU, in float32 and float64",
     .help = "What is not finite in float64 either is inherent: it lies in the values. What is\n"
             "finite there is a matter of the type or of the device. Without an argument it is\n"
             "the last one that was found. The training's tensors, random numbers and hooks are\n"
             "as they were before.\n"
             "\n"
             "  rerun\n  rerun 2\n",
     .args = {ARG_NODE},
     .flags = NEEDS,
     .run = run_rerun},
    {.name = NULL},
};
