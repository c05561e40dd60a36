// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/log/log_level.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/graph/similar.h"

static const char *const level_names[GD_LOG_LEVELS] = {
    [GD_LOG_DEBUG] = "DEBUG", [GD_LOG_INFO] = "INFO",         [GD_LOG_WARNING] = "WARNING",
    [GD_LOG_ERROR] = "ERROR", [GD_LOG_CRITICAL] = "CRITICAL",
};

/* Those of the guides for 1.5 and 2.0, and more that 2.10 knows. */
static const char *const module_names[GD_LOG_MODULES] = {
    "ANALYZER",
    "API",
    "ARMOUR",
    "COMMON",
    "CORE",
    "DEBUG",
    "DEVICE",
    "DISTRIBUTED",
    "EXPRESS",
    "EXTENSION",
    "GE_ADPT",
    "GRAPH_KERNEL",
    "HCCL_ADPT",
    "HYPER_OFFLOAD",
    "INTERNAL_KERNEL",
    "KERNEL",
    "LITE",
    "MD",
    "ME",
    "OFFLINE_DEBUG",
    "OPTIMIZER",
    "PARALLEL",
    "PARSER",
    "PIPELINE",
    "PRE_ACT",
    "PROFILER",
    "PYNATIVE",
    "RUNTIME_FRAMEWORK",
    "SESSION",
    "SYMBOLIC_SHAPE",
    "TRACE",
    "UTILS",
    "VM",
};

#define BLANKS    " \t"
#define SEPARATES " \t,"

const char *gd_log_level_name(enum gd_log_level level)
{
    return level > GD_LOG_UNSET && level < GD_LOG_LEVELS ? level_names[level] : "default";
}

const char *gd_log_module_name(int module)
{
    return module >= 0 && module < GD_LOG_MODULES ? module_names[module] : NULL;
}

/* Its index in names[first..count), case ignored; -1: no such name. *nearest is the most similar
 * one if it may have been meant. */
static int find_name(const char *const *names, int first, int count, const char *text,
                     const char **nearest)
{
    size_t least = SIZE_MAX;

    *nearest = NULL;
    for (int i = first; i < count; i++) {
        if (strcasecmp(names[i], text) == 0) {
            return i;
        }
        size_t apart =
            gd_similar_suggestion(text, strlen(text), names[i], strlen(names[i]), SIZE_MAX - 1);
        if (apart < least && (apart <= 2 || gd_similar_slip(text, names[i])) &&
            apart < strlen(names[i])) {
            least = apart;
            *nearest = names[i];
        }
    }
    return -1;
}

int gd_log_level_find(const char *text, enum gd_log_level *ret, struct gd_err *err)
{
    const char *nearest;
    bool digit = text[0] >= '0' && text[0] <= '4' && text[1] == '\0';
    int found = digit ? GD_LOG_DEBUG + text[0] - '0'
                      : find_name(level_names, GD_LOG_DEBUG, GD_LOG_LEVELS, text, &nearest);

    if (found < 0) {
        return gd_fail(err, GD_EINVAL,
                       nearest ? "'%.60s' is not a log level: did you mean %s?"
                               : "'%.60s' is not a log level: DEBUG, INFO, WARNING, ERROR or "
                                 "CRITICAL (0 to 4)%s",
                       text, nearest ? nearest : "");
    }
    *ret = (enum gd_log_level)found;
    return GD_OK;
}

int gd_log_module_find(const char *text, int *ret, struct gd_err *err)
{
    const char *nearest;
    char all[600];
    size_t len = 0;
    int found = find_name(module_names, 0, GD_LOG_MODULES, text, &nearest);

    if (found < 0 && nearest) {
        return gd_fail(err, GD_EINVAL, "MindSpore has no submodule '%.60s': did you mean %s?", text,
                       nearest);
    }
    for (int i = 0; found < 0 && i < GD_LOG_MODULES; i++) {
        len += (size_t)snprintf(all + len, sizeof(all) - len, " %s", module_names[i]);
    }
    if (found < 0) {
        return gd_fail(err, GD_EINVAL, "MindSpore has no submodule '%.60s'; there are%s", text,
                       all);
    }
    *ret = found;
    return GD_OK;
}

/* Copies the next word, which ends at a separator or a colon; false: there is none. */
static bool take_word(const char **text, char word[64])
{
    const char *at = *text + strspn(*text, SEPARATES);
    size_t len = strcspn(at, SEPARATES ":");

    snprintf(word, 64, "%.*s", (int)(len < 63 ? len : 63), at);
    *text = at + len;
    return len > 0;
}

/* "MODULE:LEVEL", or "MODULE LEVEL" at the end: then DEBUG is the module of that name. */
static bool names_module(const char *rest)
{
    char next[64];

    rest += strspn(rest, BLANKS);
    if (*rest == ':') {
        return true;
    }
    return take_word(&rest, next) && !rest[strspn(rest, SEPARATES)];
}

static int parse_one(const char **text, const char *word, struct gd_log_levels *levels,
                     struct gd_err *err)
{
    enum gd_log_level level = GD_LOG_UNSET;
    char next[64] = "";
    int module = -1, rc = GD_OK;

    if (names_module(*text)) {
        rc = gd_log_module_find(word, &module, err);
        *text += strspn(*text, BLANKS ":");
        take_word(text, next);
        word = next;
    }
    rc = rc != GD_OK ? rc : gd_log_level_find(word, &level, err);
    if (rc == GD_OK) {
        *(module < 0 ? &levels->all : &levels->module[module]) = (unsigned char)level;
    }
    return rc;
}

int gd_log_levels_parse(const char *text, struct gd_log_levels *levels, struct gd_err *err)
{
    struct gd_log_levels changed = *levels;
    char word[64];
    int rc = GD_OK, words = 0;

    for (; rc == GD_OK && take_word(&text, word); words++) {
        if (words == 0 && strcasecmp(word, "default") == 0 && !text[strspn(text, SEPARATES)]) {
            changed = (struct gd_log_levels){.all = GD_LOG_UNSET};
        } else {
            rc = parse_one(&text, word, &changed, err);
        }
    }
    if (rc == GD_OK && words == 0) {
        rc =
            gd_fail(err, GD_EINVAL, "specify a log level, or a submodule of MindSpore and a level");
    }
    if (rc == GD_OK) {
        *levels = changed;
    }
    return rc;
}

void gd_log_levels_print(const struct gd_log_levels *levels, struct gd_buf *out)
{
    const char *blank = "";

    if (levels->all != GD_LOG_UNSET) {
        gd_buf_puts(out, gd_log_level_name(levels->all));
        blank = " ";
    }
    for (int i = 0; i < GD_LOG_MODULES; i++) {
        if (levels->module[i] != GD_LOG_UNSET) {
            gd_buf_printf(out, "%s%s:%s", blank, module_names[i],
                          gd_log_level_name(levels->module[i]));
            blank = " ";
        }
    }
    if (blank[0] == '\0') {
        gd_buf_puts(out, "default");
    }
}

void gd_log_levels_variables(const struct gd_log_levels *levels, struct gd_buf *all,
                             struct gd_buf *modules)
{
    if (levels->all != GD_LOG_UNSET) {
        gd_buf_printf(all, "%d", levels->all - GD_LOG_DEBUG);
    }
    for (int i = 0; i < GD_LOG_MODULES; i++) {
        if (levels->module[i] != GD_LOG_UNSET) {
            gd_buf_printf(modules, "%s%s:%d", modules->len > 0 ? "," : "{", module_names[i],
                          levels->module[i] - GD_LOG_DEBUG);
        }
    }
    if (modules->len > 0) {
        gd_buf_putc(modules, '}');
    }
}
