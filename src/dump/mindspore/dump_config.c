// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/dump_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/json.h"

#define MAX_FILE    ((uint64_t)1 << 20)
#define MAX_KERNELS 100000
#define MAX_PATH    512 /* bytes of CANN's dump_path */

enum form { /* the kind of a key's value */
            A_BOOL,
            A_NUMBER, /* one of `words`, or any number if there are none; at least `min` */
            A_WORD,   /* one of `words` */
            A_TEXT,
            A_PATH, /* absolute, allowed characters only */
            A_NET,
            A_STEPS,
            A_WORDS,   /* a list of `words` */
            A_NAMES,   /* a list of texts */
            A_NUMBERS, /* a list of strings */
            A_PARTS,   /* words with commas between them */
            A_LIST     /* words separated by commas */
};
enum section { COMMON, E2E, ASYNC, ACL, SECTIONS };

struct key {
    enum section section;
    const char *name;
    enum form form;
    const char *words; /* separated by '|' */
    uint64_t min;
};

static const char *const section_name[SECTIONS] = {"common_dump_settings", "e2e_dump_settings",
                                                   "async_dump_settings", "dump"};
#define CATEGORIES                                                                                 \
    "max|min|avg|count|negative zero count|positive zero count|nan count|negative inf count|"      \
    "positive inf count|zero count|l2norm|md5"
enum {
    K_MODE,
    K_PATH,
    K_NET,
    K_STEPS,
    K_INITIAL,
    K_DATA,
    K_IO,
    K_KERNELS,
    K_DEVICES,
    K_DEBUG,
    K_FORMAT,
    K_OVERFLOWS,
    K_CATEGORIES,
    K_ENABLE,
    K_TRANS,
    K_ARGS,
    K_CALC,
    K_PRECISION,
    K_SAMPLE,
    K_SAMPLES,
    K_ASYNC,
    K_ASYNC_DEBUG,
    A_DUMP_PATH,
    A_MODE,
    A_SWITCH,
    A_DUMP_LIST,
    A_STEP,
    A_DATA,
    A_STATS,
    A_LEVEL,
    A_DEBUG,
    A_SCENE,
    A_KERNEL_DATA,
    KEYS
};
static const struct key keys[KEYS] = {
    [K_MODE] = {COMMON, "dump_mode", A_NUMBER, "0|1|2", 0},
    [K_PATH] = {COMMON, "path", A_PATH, NULL, 0},
    [K_NET] = {COMMON, "net_name", A_NET, NULL, 0},
    [K_STEPS] = {COMMON, "iteration", A_STEPS, NULL, 0},
    [K_INITIAL] = {COMMON, "initial_iteration", A_NUMBER, NULL, 0},
    [K_DATA] = {COMMON, "saved_data", A_WORD, "tensor|statistic|full", 0},
    [K_IO] = {COMMON, "input_output", A_NUMBER, "0|1|2", 0},
    [K_KERNELS] = {COMMON, "kernels", A_NAMES, NULL, 0},
    [K_DEVICES] = {COMMON, "support_device", A_NUMBERS, NULL, 0},
    [K_DEBUG] = {COMMON, "op_debug_mode", A_NUMBER, "0|1|2|3|4", 0},
    [K_FORMAT] = {COMMON, "file_format", A_WORD, "bin|npy", 0},
    [K_OVERFLOWS] = {COMMON, "overflow_number", A_NUMBER, NULL, 0},
    [K_CATEGORIES] = {COMMON, "statistic_category", A_WORDS, CATEGORIES, 0},
    [K_ENABLE] = {E2E, "enable", A_BOOL, NULL, 0},
    [K_TRANS] = {E2E, "trans_flag", A_BOOL, NULL, 0},
    [K_ARGS] = {E2E, "save_kernel_args", A_BOOL, NULL, 0},
    [K_CALC] = {E2E, "stat_calc_mode", A_WORD, "host|device", 0},
    [K_PRECISION] = {E2E, "device_stat_precision_mode", A_WORD, "high|low", 0},
    [K_SAMPLE] = {E2E, "sample_mode", A_NUMBER, "0|1", 0},
    [K_SAMPLES] = {E2E, "sample_num", A_NUMBER, NULL, 1},
    [K_ASYNC] = {ASYNC, "enable", A_BOOL, NULL, 0},
    [K_ASYNC_DEBUG] = {ASYNC, "op_debug_mode", A_NUMBER, "0|1|2|3", 0},
    [A_DUMP_PATH] = {ACL, "dump_path", A_TEXT, NULL, 0},
    [A_MODE] = {ACL, "dump_mode", A_WORD, "input|output|all", 0},
    [A_SWITCH] = {ACL, "dump_op_switch", A_WORD, "on|off", 0},
    [A_DUMP_LIST] = {ACL, "dump_list", A_LIST, NULL, 0},
    [A_STEP] = {ACL, "dump_step", A_STEPS, NULL, 0},
    [A_DATA] = {ACL, "dump_data", A_WORD, "tensor|stats", 0},
    [A_STATS] = {ACL, "dump_stats", A_WORDS, "Max|Min|Avg|Nan|Negative Inf|Positive Inf|L2norm", 0},
    [A_LEVEL] = {ACL, "dump_level", A_WORD, "op|kernel|all", 0},
    [A_DEBUG] = {ACL, "dump_debug", A_WORD, "on|off", 0},
    [A_SCENE] = {ACL, "dump_scene", A_WORD,
                 "lite_exception|aic_err_brief_dump|aic_err_norm_dump|aic_err_detail_dump|watcher",
                 0},
    [A_KERNEL_DATA] = {ACL, "dump_kernel_data", A_PARTS, "all|printf|tensor|assert|timestamp", 0},
};

struct reading {
    struct gd_json json;
    gd_dump_config_bad_fn fn;
    void *ctx;
    size_t bad;
    struct gd_dump_config *config;
    bool has_section[SECTIONS], has[KEYS];
    size_t at[KEYS];               /* byte offset of the value */
    uint64_t number[KEYS];         /* the value: a number, the index of a word, a bool */
    bool blacklist, watcher_nodes; /* in CANN's dump_list */
    struct gd_err *err;
};

/* ---- mistakes -------------------------------------------------------------------------------- */

static unsigned long line_of(const struct reading *r, size_t at)
{
    unsigned long line = 1;

    for (size_t i = 0; i < at && i < r->json.size; i++) {
        line += r->json.text[i] == '\n';
    }
    return line;
}

static void report_mistake(struct reading *r, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void report_mistake(struct reading *r, size_t at, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    r->bad++;
    r->fn(r->ctx, at == SIZE_MAX ? 0 : line_of(r, at), text);
}

/* The index of the word in "a|b|c", or -1. */
static int word_index(const char *words, const char *text)
{
    size_t len = strlen(text);
    int index = 0;

    for (const char *at = words; at; index++) {
        const char *end = strchr(at, '|');
        size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size == len && memcmp(at, text, len) == 0) {
            return index;
        }
        at = end ? end + 1 : NULL;
    }
    return -1;
}

/* For messages: "a, b or c". */
static const char *word_list(const char *words, char *out, size_t size)
{
    size_t len = 0;
    const char *last = strrchr(words, '|');

    out[0] = '\0';
    for (const char *at = words; *at && len + 8 < size; at++) {
        len += (size_t)snprintf(out + len, size - len,
                                *at != '|'   ? "%c"
                                : at == last ? " or "
                                             : ", ",
                                *at);
    }
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool text_has_only(const char *text, const char *more)
{
    for (; *text; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                      (*text >= '0' && *text <= '9');
        if (!letter && !strchr(more, *text)) {
            return false;
        }
    }
    return true;
}

static void keep_text(struct reading *r, char **ret, const char *text)
{
    free(*ret);
    *ret = strdup(text);
    if (!*ret) {
        gd_fail_nomem(r->err);
    }
}

static void take_number(struct reading *r, int k, const struct gd_json_token *token)
{
    const struct key *key = &keys[k];
    char list[256];
    uint64_t value = 0;

    if (token->kind != GD_JSON_NUMBER || !gd_json_unsigned(token->text, &value)) {
        report_mistake(r, token->at,
                       "%s must be a number without sign or decimal point, not a string",
                       key->name);
    } else if (key->words && word_index(key->words, token->text) < 0) {
        report_mistake(r, token->at, "%s must be %s, not %.40s", key->name,
                       word_list(key->words, list, sizeof(list)), token->text);
    } else if (value < key->min) {
        report_mistake(r, token->at, "%s must be at least %llu", key->name,
                       (unsigned long long)key->min);
    } else {
        r->number[k] = value;
    }
}

/* MindSpore 1.0 to 1.2 take one number; 0 means all steps. */
static bool take_one_step(struct reading *r, const struct gd_json_token *token)
{
    struct gd_step_rules rules = {.all_allowed = true};
    bool all = strcmp(token->text, "0") == 0;
    uint64_t value;

    r->config->one_step = token->kind == GD_JSON_NUMBER && gd_json_unsigned(token->text, &value);
    r->config->has_steps = r->config->one_step && gd_steps_parse(all ? "all" : token->text, &rules,
                                                                 &r->config->steps, NULL) == GD_OK;
    return r->config->has_steps;
}

static void take_steps(struct reading *r, int k, const struct gd_json_token *token)
{
    struct gd_step_rules rules = {
        .all_allowed = k == K_STEPS, .blanks = k == K_STEPS, .max_groups = k == A_STEP ? 100 : 0};
    struct gd_err why;

    gd_steps_clear(&r->config->steps);
    if (k == K_STEPS && take_one_step(r, token)) {
        return;
    }
    if (token->kind != GD_JSON_STRING) {
        report_mistake(r, token->at, "%s must be a string: \"0|3-5|10\"%s", keys[k].name,
                       k == K_STEPS ? " or \"all\", or for MindSpore 1.0 to 1.2 a number" : "");
    } else if (gd_steps_parse(token->text, &rules, &r->config->steps, &why) != GD_OK) {
        report_mistake(r, token->at, "%s: %.300s", keys[k].name, why.text);
    } else {
        r->config->has_steps = true;
    }
}

static void take_path(struct reading *r, int k, const char *text, size_t at)
{
    if (keys[k].form == A_TEXT && (text[0] == '\0' || strlen(text) > MAX_PATH)) {
        report_mistake(r, at, "%s must be a directory of 1 to %d bytes", keys[k].name, MAX_PATH);
    } else if (keys[k].form == A_PATH && text[0] != '/') {
        report_mistake(r, at, "path must be absolute, starting with '/'");
    } else if (keys[k].form == A_PATH && !text_has_only(text, "/_-")) {
        report_mistake(r, at,
                       "path may only contain letters, digits, '_', '-' and '/', unlike \"%.100s\"",
                       text);
    } else if (keys[k].form == A_NET && (text[0] == '\0' || !text_has_only(text, "_-"))) {
        report_mistake(r, at,
                       "net_name may only contain letters, digits, '_' and '-', unlike \"%.100s\"",
                       text);
    } else {
        keep_text(r, keys[k].form == A_NET ? &r->config->net_name : &r->config->path, text);
    }
}

static void take_text(struct reading *r, int k, const struct gd_json_token *token)
{
    const struct key *key = &keys[k];
    char list[512], part[64];

    if (token->kind != GD_JSON_STRING) {
        report_mistake(r, token->at, "%s must be a string", key->name);
    } else if (key->form == A_WORD) {
        int index = word_index(key->words, token->text);
        r->number[k] = index < 0 ? 0 : (uint64_t)index;
        if (index < 0) {
            report_mistake(r, token->at, "%s must be %s, not \"%.60s\"", key->name,
                           word_list(key->words, list, sizeof(list)), token->text);
        }
    } else if (key->form == A_PARTS) {
        for (const char *at = token->text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
            snprintf(part, sizeof(part), "%.*s", (int)strcspn(at, ","), at);
            if (word_index(key->words, part) < 0) {
                report_mistake(r, token->at, "%s may contain %s, not \"%.60s\"", key->name,
                               word_list(key->words, list, sizeof(list)), part);
            }
        }
    } else {
        take_path(r, k, token->text, token->at);
    }
}

static void add_kernel(struct reading *r, const struct gd_json_token *token)
{
    struct gd_dump_config *config = r->config;
    struct gd_kernel_choice **grown = NULL;
    struct gd_err why;

    if (config->kernels == MAX_KERNELS) {
        report_mistake(r, token->at, "more than %d operator names", MAX_KERNELS);
        return;
    }
    grown = realloc(config->kernel, (config->kernels + 1) * sizeof(*grown));
    if (!grown) {
        gd_fail_nomem(r->err);
        return;
    }
    config->kernel = grown;
    if (gd_kernel_choice_parse(token->text, &grown[config->kernels], &why) != GD_OK) {
        report_mistake(r, token->at, "kernels: \"%.100s\": %.200s", token->text, why.text);
    } else {
        config->kernels++;
    }
}

static void take_item(struct reading *r, int k, const struct gd_json_token *token)
{
    const struct key *key = &keys[k];
    char list[512];
    uint64_t value;

    if (key->form == A_NUMBERS) {
        if (token->kind != GD_JSON_NUMBER || !gd_json_unsigned(token->text, &value)) {
            report_mistake(r, token->at, "%s must be a list of numbers", key->name);
        }
    } else if (token->kind != GD_JSON_STRING) {
        report_mistake(r, token->at, "%s must be a list of strings", key->name);
    } else if (key->form == A_NAMES) {
        add_kernel(r, token);
    } else {
        int index = word_index(key->words, token->text);
        if (index < 0) {
            report_mistake(r, token->at, "%s may contain %s, not \"%.60s\"", key->name,
                           word_list(key->words, list, sizeof(list)), token->text);
        } else if (k == K_CATEGORIES && r->config->categories < GD_MS_CATEGORIES) {
            r->config->category[r->config->categories++] = index;
        }
    }
}

/* An entry of dump_list. */
static int take_model(struct reading *r)
{
    static const char *const known =
        "model_name|layer|watcher_nodes|optype_blacklist|opname_blacklist|opname_range";
    struct gd_json_token token;
    bool is_layer = false;
    int depth = 1, rc = GD_OK;

    while (depth > 0 && (rc = gd_json_next(&r->json, &token, r->err)) == GD_OK) {
        depth += token.kind == GD_JSON_OBJECT || token.kind == GD_JSON_ARRAY;
        depth -= token.kind == GD_JSON_OBJECT_END || token.kind == GD_JSON_ARRAY_END;
        if (token.kind == GD_JSON_KEY && depth == 1) {
            int index = word_index(known, token.text);
            is_layer = index == 1;
            r->watcher_nodes = r->watcher_nodes || index == 2;
            r->blacklist = r->blacklist || index >= 3;
            if (index < 0) {
                report_mistake(r, token.at, "dump_list has no key \"%.60s\"", token.text);
            }
        } else if (token.kind == GD_JSON_STRING && depth == 2 && is_layer) {
            add_kernel(r, &token);
        }
    }
    return rc;
}

static int take_list(struct reading *r, int k, const struct gd_json_token *first)
{
    struct gd_json_token token = *first;
    int rc = GD_OK;

    if (first->kind != GD_JSON_ARRAY) {
        report_mistake(r, first->at, "%s must be a list: [...]", keys[k].name);
        return gd_json_skip(&r->json, first, r->err);
    }
    while ((rc = gd_json_next(&r->json, &token, r->err)) == GD_OK &&
           token.kind != GD_JSON_ARRAY_END) {
        if (keys[k].form == A_LIST && token.kind == GD_JSON_OBJECT) {
            rc = take_model(r);
        } else if (keys[k].form == A_LIST) {
            report_mistake(r, token.at, "%s must be a list of objects: {...}", keys[k].name);
            rc = gd_json_skip(&r->json, &token, r->err);
        } else {
            take_item(r, k, &token);
            rc = gd_json_skip(&r->json, &token, r->err);
        }
        if (rc != GD_OK) {
            break;
        }
    }
    return rc;
}

static int take_value(struct reading *r, int k)
{
    struct gd_json_token token;
    int rc = gd_json_next(&r->json, &token, r->err);

    if (rc != GD_OK) {
        return rc;
    }
    r->has[k] = true;
    r->at[k] = token.at;
    switch (keys[k].form) {
    case A_WORDS:
    case A_NAMES:
    case A_NUMBERS:
    case A_LIST: return take_list(r, k, &token);
    case A_BOOL:
        r->number[k] = token.kind == GD_JSON_TRUE;
        if (token.kind != GD_JSON_TRUE && token.kind != GD_JSON_FALSE) {
            report_mistake(r, token.at, "%s must be true or false", keys[k].name);
        }
        break;
    case A_NUMBER: take_number(r, k, &token); break;
    case A_STEPS: take_steps(r, k, &token); break;
    default: take_text(r, k, &token); break;
    }
    return gd_json_skip(&r->json, &token, r->err);
}

/* ---- objects --------------------------------------------------------------------------------- */

static int skip_value(struct reading *r)
{
    struct gd_json_token token;
    int rc = gd_json_next(&r->json, &token, r->err);

    return rc != GD_OK ? rc : gd_json_skip(&r->json, &token, r->err);
}

static int find_key(enum section section, const char *name)
{
    for (int k = 0; k < KEYS; k++) {
        if (keys[k].section == section && strcmp(keys[k].name, name) == 0) {
            return k;
        }
    }
    return -1;
}

/* The object that a misplaced key belongs to. */
static const char *home_of(const char *name)
{
    for (int k = 0; k < KEYS; k++) {
        if (strcmp(keys[k].name, name) == 0) {
            return section_name[keys[k].section];
        }
    }
    return NULL;
}

static int take_section(struct reading *r, enum section section)
{
    struct gd_json_token token;
    int rc = gd_json_next(&r->json, &token, r->err);

    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        report_mistake(r, token.at, "%s must be an object: {...}", section_name[section]);
        return gd_json_skip(&r->json, &token, r->err);
    }
    while (rc == GD_OK && (rc = gd_json_next(&r->json, &token, r->err)) == GD_OK &&
           token.kind == GD_JSON_KEY) {
        int k = find_key(section, token.text);
        const char *home = k < 0 ? home_of(token.text) : NULL;
        if (k >= 0 && !r->has[k]) {
            rc = take_value(r, k);
            continue;
        }
        if (k >= 0) {
            report_mistake(r, token.at, "duplicate %s", keys[k].name);
        } else if (home) {
            report_mistake(r, token.at, "%s belongs in %s, not in %s", token.text, home,
                           section_name[section]);
        } else {
            report_mistake(r, token.at, "%s has no key \"%.60s\"", section_name[section],
                           token.text);
        }
        rc = skip_value(r);
    }
    return rc;
}

static int take_root(struct reading *r)
{
    struct gd_json_token token;
    int rc = gd_json_next(&r->json, &token, r->err);

    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        return gd_json_fail(&r->json, token.at, GD_EPROTO, r->err,
                            "not an object, so neither data_dump.json nor acl.json");
    }
    while (rc == GD_OK && (rc = gd_json_next(&r->json, &token, r->err)) == GD_OK &&
           token.kind == GD_JSON_KEY) {
        int section = 0;
        while (section < SECTIONS && strcmp(section_name[section], token.text) != 0) {
            section++;
        }
        if (section < SECTIONS && !r->has_section[section]) {
            r->has_section[section] = true;
            rc = take_section(r, (enum section)section);
            continue;
        }
        report_mistake(r, token.at,
                       section < SECTIONS ? "duplicate %.60s"
                                          : "\"%.60s\" is not a key of this file",
                       token.text);
        rc = skip_value(r);
    }
    /* expects the end of the text */
    return rc != GD_OK ? rc : gd_json_next(&r->json, &token, r->err);
}

/* ---- consistency ----------------------------------------------------------------------------- */

static void check_mindspore(struct reading *r)
{
    static const int needed[] = {K_MODE, K_NET, K_STEPS};

    if (!r->has_section[COMMON]) {
        report_mistake(r, SIZE_MAX, "common_dump_settings is missing");
    }
    for (size_t i = 0; r->has_section[COMMON] && i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (!r->has[needed[i]]) {
            report_mistake(r, SIZE_MAX, "common_dump_settings lacks %s", keys[needed[i]].name);
        }
    }
    if (!r->has_section[E2E] && !r->has_section[ASYNC]) {
        report_mistake(r, SIZE_MAX, "e2e_dump_settings is missing");
    }
    if (r->has[K_MODE] && r->number[K_MODE] == 1 && r->has[K_KERNELS] && r->config->kernels == 0) {
        report_mistake(r, r->at[K_KERNELS], "dump_mode is 1, but kernels is empty");
    }
    if (r->has[K_MODE] && r->number[K_MODE] == 1 && !r->has[K_KERNELS]) {
        report_mistake(r, r->at[K_MODE], "dump_mode 1 needs kernels");
    }
    if (r->has[K_OVERFLOWS] && r->number[K_DEBUG] != 3) {
        report_mistake(r, r->at[K_OVERFLOWS], "overflow_number is only for op_debug_mode 3");
    }
}

static void check_acl(struct reading *r)
{
    bool debug = r->has[A_DEBUG] && r->number[A_DEBUG] == 0;
    bool single = r->has[A_SWITCH] && r->number[A_SWITCH] == 0;
    bool watcher = r->has[A_SCENE] && r->number[A_SCENE] == 4;

    if (!r->has[A_DUMP_PATH] && !r->has[A_SCENE]) {
        report_mistake(r, SIZE_MAX, "dump lacks dump_path");
    }
    if (debug && single) {
        report_mistake(r, r->at[A_DEBUG], "dump_debug on and dump_op_switch on exclude each other");
    }
    if (r->has[A_SCENE] && !watcher && (debug || single)) {
        report_mistake(r, r->at[A_SCENE],
                       "dump_scene excludes both dump_debug on and dump_op_switch on");
    }
    if (watcher && r->has[A_MODE] && r->number[A_MODE] != 1) {
        report_mistake(r, r->at[A_MODE], "dump_scene watcher requires dump_mode output");
    }
    if (watcher && !r->watcher_nodes) {
        report_mistake(r, r->at[A_SCENE], "dump_scene watcher requires watcher_nodes in dump_list");
    }
    if (r->blacklist && !(r->has[A_LEVEL] && r->number[A_LEVEL] == 0)) {
        report_mistake(r, r->at[A_DUMP_LIST], "blacklists and ranges require dump_level op");
    }
}

/* Lists settings about devices, their memory or their runtime. Of dump_mode only 2 is unused: cells
 * chosen by a script. */
static void list_unused(struct reading *r)
{
    static const int keys_unused[] = {
        K_INITIAL, K_DEVICES, K_DEBUG,     K_FORMAT, K_OVERFLOWS, K_TRANS,
        K_ARGS,    K_CALC,    K_PRECISION, K_SAMPLE, K_SAMPLES,   K_ASYNC_DEBUG,
        A_SWITCH,  A_STATS,   A_LEVEL,     A_DEBUG,  A_SCENE,     A_KERNEL_DATA};
    struct gd_buf *out = &r->config->unused;

    if (r->has[K_MODE] && r->number[K_MODE] == 2) {
        gd_buf_puts(out, "dump_mode 2");
    }
    for (size_t i = 0; i < sizeof(keys_unused) / sizeof(keys_unused[0]); i++) {
        if (r->has[keys_unused[i]]) {
            gd_buf_printf(out, "%s%s", out->len > 0 ? ", " : "", keys[keys_unused[i]].name);
        }
    }
}

static void check_consistency(struct reading *r)
{
    static const enum gd_dump_io acl_io[] = {GD_DUMP_INPUT, GD_DUMP_OUTPUT, GD_DUMP_ALL};
    struct gd_dump_config *config = r->config;

    config->is_acl = r->has_section[ACL];
    if (config->is_acl &&
        (r->has_section[COMMON] || r->has_section[E2E] || r->has_section[ASYNC])) {
        report_mistake(r, SIZE_MAX, "it has keys of both data_dump.json and acl.json");
    } else if (config->is_acl) {
        check_acl(r);
    } else {
        check_mindspore(r);
    }
    if (config->is_acl) {
        config->data = r->number[A_DATA] ? GD_DUMP_STATISTIC : GD_DUMP_TENSOR;
        config->io = r->has[A_MODE] ? acl_io[r->number[A_MODE]] : GD_DUMP_OUTPUT;
        config->chosen = config->kernels > 0;
    } else {
        config->data = (enum gd_dump_data)r->number[K_DATA];
        config->io = (enum gd_dump_io)r->number[K_IO];
        config->chosen = r->number[K_MODE] == 1;
    }
    list_unused(r);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int parse_text(struct reading *r, const char *what)
{
    r->json = (struct gd_json){
        .text = r->config->text, .size = r->config->size, .max_depth = 16, .what = what};
    int rc = take_root(r);

    gd_json_deinit(&r->json);
    rc = rc != GD_OK ? rc : r->err->code;
    if (rc == GD_OK) {
        check_consistency(r);
    }
    return rc;
}

int gd_dump_config_parse(const char *text, size_t size, const char *what, gd_dump_config_bad_fn fn,
                         void *ctx, size_t *bad, struct gd_dump_config **ret, struct gd_err *err)
{
    struct gd_err own = {.code = GD_OK};
    struct reading r = {.fn = fn, .ctx = ctx, .err = &own};
    int rc;

    *ret = NULL;
    *bad = 0;
    r.config = calloc(1, sizeof(*r.config));
    if (!r.config || !(r.config->text = malloc(size + 1))) {
        free(r.config);
        return gd_fail(err, GD_ENOMEM, "out of memory for %.300s", what);
    }
    memcpy(r.config->text, text, size);
    r.config->size = size;
    gd_buf_init(&r.config->unused, MAX_FILE);
    rc = parse_text(&r, what);
    *bad = r.bad;
    if (rc != GD_OK || r.bad > 0) {
        gd_dump_config_free(r.config);
    } else {
        *ret = r.config;
    }
    return rc == GD_OK ? GD_OK : gd_fail(err, rc, "%s", own.text);
}

int gd_dump_config_read(const char *path, gd_dump_config_bad_fn fn, void *ctx, size_t *bad,
                        struct gd_dump_config **ret, struct gd_err *err)
{
    struct gd_file_text text;
    int rc = gd_file_text_read(path, MAX_FILE, &text, err);

    *ret = NULL;
    *bad = 0;
    if (rc == GD_OK) {
        rc = gd_dump_config_parse(text.data, text.size, path, fn, ctx, bad, ret, err);
        free(text.data);
    }
    return rc;
}

void gd_dump_config_free(struct gd_dump_config *config)
{
    if (!config) {
        return;
    }
    for (size_t i = 0; i < config->kernels; i++) {
        gd_kernel_choice_free(config->kernel[i]);
    }
    free(config->kernel);
    gd_buf_deinit(&config->unused);
    gd_steps_clear(&config->steps);
    free(config->path);
    free(config->net_name);
    free(config->text);
    free(config);
}
