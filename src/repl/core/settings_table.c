// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/settings_table.h"

#include "engine/graph/similar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KIB         1024.0
#define MIB         (1024.0 * KIB)
#define GIB         (1024.0 * MIB)
#define AT(field)   offsetof(struct gd_settings, field)
#define ROOM(field) ((double)sizeof(((struct gd_settings *)0)->field) - 1)
#define DAY         86400 /* seconds */

/* From the type to the unit. */
#define FLAG(field)           SETTING_BOOL, AT(field), 0, 0, NULL, ""
#define CHOICE(field, words)  SETTING_CHOICE, AT(field), 0, 0, words, ""
#define TEXT(field)           SETTING_TEXT, AT(field), 0, ROOM(field), NULL, ""
#define SIZE(field, min, max) SETTING_SIZE, AT(field), min, max, NULL, "bytes"
#define SECONDS(field)        SETTING_SECONDS, AT(field), 0, DAY, NULL, "seconds"

const struct setting settings_table[] = {
    {"altscreen", "tui altscreen", FLAG(altscreen),
     "Use the terminal's alternate screen for the panes; off: their last picture stays on the "
     "terminal"},
    {"charset", NULL, CHOICE(charset, "auto utf8 ascii"),
     "Characters used for drawing; auto: according to the locale"},
    {"color", "colour", CHOICE(color, "auto always never"),
     "Colour in the output; auto: according to the terminal and NO_COLOR"},
    {"colors", "colours", CHOICE(colors, "auto 8 16 256"),
     "Number of colours that the panes use; auto: as many as the terminal has"},
    {"confirm", NULL, FLAG(confirm), "Ask before an action that cannot be undone"},
    {"dump-bytes", NULL, SIZE(dump_bytes, 0, 1e18),
     "Most bytes that dump writes, over all steps; 0: no limit"},
    {"dump-config", NULL, TEXT(dump_config), "The data_dump.json that dump follows"},
    {"evaluate", NULL, CHOICE(evaluate, "auto local remote"),
     "Who evaluates watchpoints: gradb (local), the training process itself (remote), or the "
     "process where it can (auto)"},
    {"evaluate-code", NULL, CHOICE(evaluate_code, "off ask on"),
     "Run Python code that you type (print, call, interact, dprintf) in the training process; ask: "
     "at a prompt, once; never for other hosts"},
    {"history size", NULL, SETTING_INT, AT(history_size), 0, 1e6, NULL, "lines",
     "Lines kept in the history file"},
    {"history-bytes", NULL, SIZE(history_bytes, 0, 4 * GIB),
     "Size of the file of recent statistics; 0: none is kept"},
    {"history-file", NULL, TEXT(history_file),
     "Path of that file; empty: in the user's state directory"},
    {"keep-previous", NULL, TEXT(keep_previous),
     "Selector of the nodes whose previous value the training process keeps"},
    {"keepalive", NULL, SECONDS(keepalive),
     "Seconds between the pings that detect a lost training process; 0: no pings"},
    {"list-lines", "listsize", SETTING_INT, AT(list_lines), 1, 10000, NULL, "lines",
     "Source lines that list shows"},
    {"log-level", NULL, SETTING_LEVELS, AT(log_levels), 0, 0, NULL, "",
     "Log level of MindSpore (GLOG_v) or of a submodule (MS_SUBMODULE_LOG_v) in programs that run "
     "starts: LEVEL, MODULE LEVEL, or default for both to be as in the environment"},
    {"logging enabled", "logging", FLAG(logging),
     "Copy the output to the file of set logging file; gdb's set logging on works, too"},
    {"logging file", NULL, TEXT(logging_file),
     "The file; a change counts when logging is turned on"},
    {"logging overwrite", NULL, FLAG(logging_overwrite),
     "Turning logging on empties the file (on) or appends to it (off)"},
    {"logging redirect", NULL, FLAG(logging_redirect),
     "While logging is on, the output goes to the file only"},
    {"max-cache", NULL, SIZE(max_cache, 0, 1024 * GIB),
     "Memory for fetched tensors, per training process"},
    {"max-connections", NULL, SETTING_COUNT, AT(max_connections), 1, 65536, NULL, "",
     "Connections open at once"},
    {"max-graph", NULL, SIZE(max_graph, 4 * KIB, 64 * GIB),
     "Largest graph that is accepted, in bytes as sent"},
    {"max-graph-memory", NULL, SIZE(max_graph_memory, 64 * KIB, 1024 * GIB),
     "Memory for all graphs, per training process"},
    {"max-hits", NULL, SETTING_COUNT, AT(max_hits), 1, 1e8, NULL, "",
     "Watchpoint hits kept, per training process"},
    {"max-log-lines", NULL, SETTING_COUNT, AT(max_log_lines), 0, 1e7, NULL, "lines",
     "Lines of the script's output that info log can show"},
    {"max-message", NULL, SIZE(max_message, 4 * KIB, 2 * GIB - 1),
     "Largest message that is accepted from a training process"},
    {"max-sessions", NULL, SETTING_COUNT, AT(max_sessions), 1, 65536, NULL, "",
     "Most training processes at once"},
    {"max-tensor", NULL, SIZE(max_tensor, 1, 1024 * GIB), "Largest tensor that is fetched"},
    {"memory-metrics", NULL, FLAG(memory_metrics),
     "Report the metrics memory_rss, memory_allocated and memory_peak after each step; all "
     "processes, also those that connect later"},
    {"mouse", NULL, FLAG(mouse),
     "Use the mouse in the panes: a click moves the focus, the wheel scrolls; the terminal then "
     "selects no text"},
    {"ms-remote", NULL, FLAG(ms_shared_allow_remote),
     "Let MindSpore processes on other hosts connect, although they cannot send a token"},
    {"ms-version-check", NULL, SETTING_SWITCH, AT(ms_version_check_strict), 0, 0, "lenient strict",
     "", "How to treat another version of MindSpore: warn (lenient) or refuse (strict)"},
    {"name-style", NULL, CHOICE(name_style, "slashes dots"),
     "How the names of nodes and scopes are shown: model/fc/weight or model.fc.weight; JSON always "
     "has slashes"},
    {"on-error", NULL, CHOICE(on_error, "detach kill continue"),
     "When a command fails with --batch: detach and wait for the training to end, kill it, or "
     "continue with the next command; the exit status is never 0"},
    {"on-hangup", NULL, CHOICE(on_hangup, "hold continue detach"),
     "When the terminal is closed: stop the training and keep the session (hold), resume it and "
     "keep the session (continue), or detach and exit (detach)"},
    {"on-loss", NULL, CHOICE(on_loss, "continue hold"),
     "When gradb disappears, the training process continues, or waits for gradb at the next stop"},
    {"pagination", NULL, FLAG(pagination), "Pause long output after each screenful"},
    {"print edge-items", NULL, SETTING_INT, AT(print_edge_items), 0, 1000000, NULL, "elements",
     "Elements shown at each end of a shortened axis"},
    {"print precision", NULL, SETTING_INT, AT(print_precision), 0, 17, NULL, "digits",
     "Digits after the decimal point"},
    {"print suppress", NULL, FLAG(print_suppress),
     "Print very small values as 0 instead of in scientific notation"},
    {"print threshold", "print elements", SETTING_INT64, AT(print_threshold), 0, 1e12, NULL,
     "elements", "Shorten tensors with more elements with \"...\""},
    {"print width", NULL, SETTING_INT, AT(print_width), 20, 100000, NULL, "columns",
     "Columns for printed values"},
    {"rank-locking", "scheduler-locking", CHOICE(rank_locking, "off step on"),
     "Which ranks of a job resume: all (off), all except for next (step; MindSpore on a CPU: all), "
     "only the selected one (on)"},
    {"rank-patience", NULL, SECONDS(rank_patience),
     "When a rank has stopped by itself: seconds before gradb reports which other ranks still run"},
    {"recommend", NULL, CHOICE(recommend, "off ask on"),
     "Recommended watchpoints at the first stop, on a terminal: off, ask whether to set them, or "
     "set them (on)"},
    {"shared-memory", NULL, FLAG(shared_memory),
     "Fetch tensors through shared memory from training processes on this host"},
    {"start-timeout", NULL, SECONDS(start_timeout),
     "Seconds that run waits for the program to connect; 0: no limit"},
    {"stop-on-hit", NULL, FLAG(stop_on_hit),
     "Stop when a watchpoint fires; off: only report it (MindSpore processes)"},
    {"theme", NULL, CHOICE(theme, "dark light safe"),
     "Colours of the panes: for a dark or a light background, or only blue and orange, for "
     "colour-blind readers (safe)"},
    {"timing", NULL, FLAG(timing),
     "Measure the time of each operator in a few steps, for info timing; all processes, also those "
     "that connect later"},
    {"token", NULL, TEXT(token), "Secret that training processes must have in GRADB_TOKEN"},
    {"watch-when", NULL, CHOICE(watch_when, "auto exact step"),
     "When tensors are checked: after each operator (exact), at the end of the step (step), or "
     "exact only for NaN and Inf (auto)"},
    {.name = NULL},
};

/* ---- finding ---- */

static bool same_letter(char typed, char named)
{
    bool typed_gap = typed == ' ' || typed == '-' || typed == '_' || typed == '\t';
    bool named_gap = named == ' ' || named == '-';
    return typed_gap || named_gap ? typed_gap && named_gap : typed == named;
}

/* How many characters of text spell the whole name; 0: it does not. */
static size_t match_name(const char *text, const char *name)
{
    size_t i = 0;
    while (name && name[i] != '\0') {
        if (!same_letter(text[i], name[i])) {
            return 0;
        }
        i++;
    }
    bool ends = text[i] == '\0' || text[i] == ' ' || text[i] == '\t' || text[i] == '=';
    return name && ends ? i : 0;
}

/* Whether the words of text abbreviate the first words of the name: "pr prec". Returns the
 * characters used; whole words of the text only. */
static size_t match_words(const char *text, const char *name)
{
    size_t at = 0;
    const char *n = name;

    for (;;) {
        size_t len = strcspn(text + at, " \t=");
        size_t name_len = strcspn(n, " ");
        if (len == 0 || len > name_len) {
            return 0;
        }
        for (size_t i = 0; i < len; i++) {
            if (!same_letter(text[at + i], n[i])) {
                return 0;
            }
        }
        at += len;
        n += name_len;
        if (*n == '\0') {
            return at;
        }
        n++;
        at += strspn(text + at, " \t");
    }
}

static int fail_unknown(const char *text, struct gd_err *err)
{
    const struct setting *near = NULL;
    size_t len = strcspn(text, " \t="), best = len >= 4 ? 3 : 2;

    for (const struct setting *s = settings_table; s->name; s++) {
        size_t far = gd_similar_suggestion(text, len, s->name, strlen(s->name), best);
        if (far < best) {
            best = far;
            near = s;
        }
    }
    if (near) {
        return gd_fail(err, GD_ENOTFOUND, "there is no setting \"%.*s\"; did you mean \"%s\"?",
                       len < 60 ? (int)len : 60, text, near->name);
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no setting \"%.60s\": see \"info settings\"", text);
}

int setting_find(const char *text, const struct setting **ret, const char **rest,
                 struct gd_err *err)
{
    const struct setting *found = NULL;
    size_t used = 0;
    struct gd_buf names = GD_BUF_INIT(400);
    int matches = 0;

    for (const struct setting *s = settings_table; s->name; s++) {
        size_t exact = match_name(text, s->name);
        exact = exact > 0 ? exact : match_name(text, s->also);
        if (exact > used) {
            used = exact;
            found = s;
        }
    }
    for (const struct setting *s = settings_table; used == 0 && s->name; s++) {
        size_t letters = match_words(text, s->name);
        if (letters > 0) {
            gd_buf_printf(&names, "%s%s", matches > 0 ? ", " : "", s->name);
            matches++;
            found = s;
        }
    }
    int rc = GD_OK;
    if (used == 0 && matches > 1) {
        rc = gd_fail(err, GD_EAMBIGUOUS, "\"%.60s\" is ambiguous: %s", text, gd_buf_text(&names));
    } else if (!found) {
        rc = fail_unknown(text, err);
    } else {
        used = used > 0 ? used : match_words(text, found->name);
        *ret = found;
        *rest = text + used + strspn(text + used, " \t");
    }
    gd_buf_deinit(&names);
    return rc;
}

/* ---- values ---- */

static int wrong_value(const struct setting *setting, const char *value, struct gd_err *err)
{
    struct gd_buf range = GD_BUF_INIT(400);
    setting_range(setting, &range);
    int rc = gd_fail(err, GD_EINVAL, "%s takes %s, not \"%.60s\"", setting->name,
                     gd_buf_text(&range), value);
    gd_buf_deinit(&range);
    return rc;
}

/* Index of the choice by name or unique prefix; -1: not a choice. */
static int find_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    int index = 0;
    int found = -1;
    int matches = 0;

    for (const char *p = choices; *p != '\0' && len > 0; index++) {
        size_t choice_len = strcspn(p, " ");
        if (choice_len == len && memcmp(p, value, len) == 0) {
            return index;
        }
        if (choice_len > len && memcmp(p, value, len) == 0) {
            found = index;
            matches++;
        }
        p += choice_len + (p[choice_len] == ' ' ? 1 : 0);
    }
    return matches == 1 ? found : -1;
}

static int parse_switch(const char *value)
{
    static const char *const words[] = {"off", "on",    "no",   "yes",     "0",
                                        "1",   "false", "true", "disable", "enable"};
    if (value[0] == '\0') {
        return 1; /* as in gdb, `set confirm` turns it on */
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return (int)(i & 1);
        }
    }
    return -1;
}

/* "64 MiB", "64M", "1.5g", "4096". Negative: not a size. */
static double parse_size(const char *value)
{
    static const char units[] = "bkmgt";
    char *end = NULL;
    double number = strtod(value, &end);

    if (end == value || !isfinite(number)) {
        return -1;
    }
    end += strspn(end, " \t");
    if (*end == '\0') {
        return number;
    }
    const char *unit = strchr(units, *end | 0x20);
    if (!unit) {
        return -1;
    }
    const char *tail = end + 1;
    bool good = *tail == '\0' || strcasecmp(tail, "b") == 0 || strcasecmp(tail, "ib") == 0 ||
                strcasecmp(end, "bytes") == 0;
    return good ? ldexp(number, 10 * (int)(unit - units)) : -1;
}

static int parse_number(const struct setting *setting, const char *value, double *ret,
                        struct gd_err *err)
{
    char *end = NULL;
    double number = setting->type == SETTING_SIZE ? parse_size(value) : strtod(value, &end);
    bool whole = setting->type == SETTING_SECONDS || setting->type == SETTING_SIZE ||
                 number == floor(number);

    if (value[0] == '\0' || (end && (end == value || *end != '\0')) || !isfinite(number) ||
        !whole || number < setting->min || number > setting->max) {
        return wrong_value(setting, value, err);
    }
    *ret = number;
    return GD_OK;
}

static int store_number(const struct setting *setting, const char *value, void *at,
                        struct gd_err *err)
{
    double number = 0;
    int rc = parse_number(setting, value, &number, err);

    if (rc != GD_OK) {
        return rc;
    }
    switch (setting->type) {
    case SETTING_INT: *(int *)at = (int)number; break;
    case SETTING_INT64: *(int64_t *)at = (int64_t)number; break;
    case SETTING_COUNT:
    case SETTING_SIZE: *(uint64_t *)at = (uint64_t)number; break;
    default: *(double *)at = number; break;
    }
    return GD_OK;
}

int setting_parse(const struct setting *setting, const char *value, struct gd_settings *settings,
                  struct gd_err *err)
{
    void *at = (char *)settings + setting->offset;
    int index = 0;

    switch (setting->type) {
    case SETTING_BOOL:
        index = parse_switch(value);
        if (index < 0) {
            return wrong_value(setting, value, err);
        }
        *(bool *)at = index != 0;
        return GD_OK;
    case SETTING_CHOICE:
    case SETTING_SWITCH:
        index = find_choice(setting->choices, value);
        if (index < 0) {
            return wrong_value(setting, value, err);
        }
        if (setting->type == SETTING_SWITCH) {
            *(bool *)at = index != 0;
        } else {
            memcpy(at, &index, sizeof(index)); /* an int, or an enum of that size */
        }
        return GD_OK;
    case SETTING_TEXT:
        if ((double)strlen(value) > setting->max) {
            return gd_fail(err, GD_ELIMIT, "%s has at most %.0f characters", setting->name,
                           setting->max);
        }
        memcpy(at, value, strlen(value) + 1);
        return GD_OK;
    case SETTING_LEVELS: return gd_log_levels_parse(value, at, err);
    default: return store_number(setting, value, at, err);
    }
}

static void print_size(uint64_t bytes, struct gd_buf *out)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (unit < 4 && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    gd_buf_printf(out, "%llu %s", (unsigned long long)bytes, units[unit]);
}

static void print_choice(const char *choices, int index, struct gd_buf *out)
{
    const char *p = choices;
    for (int i = 0; i < index && *p != '\0'; i++) {
        p += strcspn(p, " ");
        p += *p == ' ' ? 1 : 0;
    }
    gd_buf_add(out, p, strcspn(p, " "));
}

void setting_print(const struct setting *setting, const struct gd_settings *settings,
                   struct gd_buf *out)
{
    const void *at = (const char *)settings + setting->offset;
    int index = 0;

    switch (setting->type) {
    case SETTING_BOOL: gd_buf_puts(out, *(const bool *)at ? "on" : "off"); break;
    case SETTING_INT: gd_buf_printf(out, "%d", *(const int *)at); break;
    case SETTING_INT64: gd_buf_printf(out, "%lld", (long long)*(const int64_t *)at); break;
    case SETTING_COUNT:
        gd_buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case SETTING_SIZE: print_size(*(const uint64_t *)at, out); break;
    case SETTING_SECONDS: gd_buf_printf(out, "%g", *(const double *)at); break;
    case SETTING_CHOICE:
        memcpy(&index, at, sizeof(index));
        print_choice(setting->choices, index, out);
        break;
    case SETTING_SWITCH: print_choice(setting->choices, *(const bool *)at ? 1 : 0, out); break;
    case SETTING_TEXT: gd_buf_puts(out, at); break;
    case SETTING_LEVELS: gd_log_levels_print(at, out); break;
    }
}

static void print_choices(const char *choices, struct gd_buf *out)
{
    for (const char *p = choices; *p != '\0'; p++) {
        if (*p == ' ') {
            gd_buf_puts(out, " | ");
        } else {
            gd_buf_putc(out, *p);
        }
    }
}

void setting_range(const struct setting *setting, struct gd_buf *out)
{
    switch (setting->type) {
    case SETTING_BOOL: gd_buf_puts(out, "on | off"); break;
    case SETTING_CHOICE:
    case SETTING_SWITCH: print_choices(setting->choices, out); break;
    case SETTING_TEXT: gd_buf_puts(out, "text"); break;
    case SETTING_LEVELS: gd_buf_puts(out, "LEVEL | MODULE LEVEL | default"); break;
    case SETTING_SIZE:
        print_size((uint64_t)setting->min, out);
        gd_buf_puts(out, " to ");
        print_size((uint64_t)setting->max, out);
        break;
    default:
        gd_buf_printf(out, "%.0f to %.0f", setting->min, setting->max);
        if (setting->unit[0] != '\0') {
            gd_buf_printf(out, " %s", setting->unit);
        }
        break;
    }
}
