// SPDX-License-Identifier: MIT
/* The words that define a metric. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_impl.h"

#define MAX_TEXT 4096

static const char *const kinds[GD_METRIC_KINDS] = {[GD_METRIC_ACCURACY] = "accuracy",
                                                   [GD_METRIC_TOPK] = "topk",
                                                   [GD_METRIC_LOSS] = "loss",
                                                   [GD_METRIC_PRECISION] = "precision",
                                                   [GD_METRIC_RECALL] = "recall",
                                                   [GD_METRIC_F1] = "f1",
                                                   [GD_METRIC_CONFUSION] = "confusion",
                                                   [GD_METRIC_MSE] = "mse",
                                                   [GD_METRIC_MAE] = "mae",
                                                   [GD_METRIC_R2] = "r2",
                                                   [GD_METRIC_AUC] = "auc",
                                                   [GD_METRIC_PERPLEXITY] = "perplexity",
                                                   [GD_METRIC_CUSTOM] = "update",
                                                   [GD_METRIC_FILE] = "from"};
static const char *const averages[] = {"default", "macro", "all", "micro", "weighted", "none"};

const char *gd_metric_kind_name(enum gd_metric_kind kind)
{
    return kinds[kind];
}

const char *gd_metric_average_name(enum gd_metric_average average)
{
    return averages[average];
}

/* ---- names ----------------------------------------------------------------------------------- */

static int find_kind(const char *word)
{
    for (int i = 0; i < GD_METRIC_CUSTOM; i++) {
        if (strcasecmp(kinds[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

/* How many letters differ, up to 3. */
static int distance_of(const char *a, const char *b, int most)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (!*a || !*b || most == 0) {
        size_t rest = strlen(a) + strlen(b);
        return !*a || !*b ? (rest > 3 ? 3 : (int)rest) : 3;
    }
    int one = distance_of(a + 1, b + 1, most - 1), two = distance_of(a + 1, b, most - 1);
    int three = distance_of(a, b + 1, most - 1);
    int least = one < two ? one : two;
    least = least < three ? least : three;
    return least + 1 > 3 ? 3 : least + 1;
}

static int unknown_kind(const char *word, struct gd_err *err)
{
    const char *near = NULL;
    for (int i = 0, best = 3; i < GD_METRIC_CUSTOM; i++) {
        bool begins = word[0] && word[1] && strncasecmp(word, kinds[i], strlen(word)) == 0;
        int d = begins ? 0 : distance_of(word, kinds[i], 2);
        if (d < best) {
            best = d;
            near = kinds[i];
        }
    }
    if (near) {
        return gd_fail(err, GD_ENOTFOUND, "no metric '%.60s': did you mean %s?", word, near);
    }
    return gd_fail(err, GD_ENOTFOUND,
                   "no metric '%.60s': there are accuracy, topk, loss, precision, recall, f1, "
                   "confusion, mse, mae, r2, auc and perplexity, NAME = update ... result ..., and "
                   "NAME from FILE.py",
                   word);
}

static int check_name(const char *name, struct gd_err *err)
{
    bool ok = isalpha((unsigned char)name[0]) && strlen(name) < GD_METRIC_NAME;
    for (const char *p = name; *p; p++) {
        ok = ok && (isalnum((unsigned char)*p) || *p == '_');
    }
    return ok ? GD_OK
              : gd_fail(err, GD_EINVAL,
                        "'%.60s' cannot name a metric: use up to %d letters, digits and _", name,
                        GD_METRIC_NAME - 1);
}

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
    const char *at;
    char word[GD_METRIC_TEXT];
};

/* The next word, or the text in double quotes. False: there is none, or it is too long. */
static bool next_word(struct words *w)
{
    size_t len = 0;
    w->at += strspn(w->at, " \t\n");
    bool quoted = *w->at == '"';
    w->at += quoted;
    while (*w->at && (quoted ? *w->at != '"' : !isspace((unsigned char)*w->at))) {
        w->at += quoted && *w->at == '\\' && w->at[1] != '\0';
        if (len + 1 >= sizeof(w->word)) {
            return false;
        }
        w->word[len++] = *w->at++;
    }
    w->at += quoted && *w->at == '"';
    w->word[len] = '\0';
    return len > 0;
}

static const char *next_or(struct words *w, const char *otherwise)
{
    return next_word(w) ? w->word : otherwise;
}

static bool takes_classes(enum gd_metric_kind kind)
{
    return kind == GD_METRIC_PRECISION || kind == GD_METRIC_RECALL || kind == GD_METRIC_F1 ||
           kind == GD_METRIC_AUC;
}

static bool read_whole(const char *text, int64_t *ret)
{
    char *end;
    *ret = strtoll(text, &end, 10);
    return *text && !*end;
}

/* takes: what the option's value is. */
static int wrong_number(const char *word, const char *takes, struct gd_err *err)
{
    return gd_fail(err, GD_EINVAL, "'%.100s': %.*s takes %s", word, (int)strcspn(word, "="), word,
                   takes);
}

static int take_average(struct gd_metric_spec *spec, const char *value, struct gd_err *err)
{
    for (int i = GD_AVERAGE_MACRO; i <= GD_AVERAGE_NONE; i++) {
        if (strcmp(averages[i], value) == 0) {
            spec->average = (enum gd_metric_average)i;
            return spec->kind != GD_METRIC_AUC || (i != GD_AVERAGE_MICRO && i != GD_AVERAGE_ALL)
                       ? GD_OK
                       : gd_fail(err, GD_EINVAL, "auc takes average=macro, weighted or none");
        }
    }
    return gd_fail(err, GD_EINVAL,
                   "average=%.40s: it is macro, micro, weighted, all or none (docs/metrics.md)",
                   value);
}

static int take_value(struct gd_metric_spec *spec, const char *word, const char *value,
                      struct gd_err *err)
{
    char *end;
    if (strncmp(word, "k=", 2) == 0 && spec->kind == GD_METRIC_TOPK) {
        return read_whole(value, &spec->k) && spec->k >= 1
                   ? GD_OK
                   : wrong_number(word, "a whole number from 1 on", err);
    }
    if (strncmp(word, "average=", 8) == 0 && takes_classes(spec->kind)) {
        return take_average(spec, value, err);
    }
    if (strncmp(word, "class=", 6) == 0 && takes_classes(spec->kind)) {
        return read_whole(value, &spec->of_class) && spec->of_class >= 0
                   ? GD_OK
                   : wrong_number(word, "the number of a class, from 0 on", err);
    }
    if (strncmp(word, "ignore=", 7) == 0) {
        spec->has_ignore = true;
        return read_whole(value, &spec->ignore)
                   ? GD_OK
                   : wrong_number(word, "a label, which is a whole number", err);
    }
    if (strncmp(word, "threshold=", 10) == 0) {
        spec->has_threshold = true;
        spec->threshold = strtod(value, &end);
        return *value && !*end && isfinite(spec->threshold)
                   ? GD_OK
                   : wrong_number(word, "a number, such as 0.5", err);
    }
    if (strcmp(word, "per=sample") == 0 || strcmp(word, "per=element") == 0) {
        spec->per_sample = word[4] == 's';
        return GD_OK;
    }
    return gd_fail(err, GD_EINVAL, "'%.100s' is not an option of %s: see \"help metric\"", word,
                   kinds[spec->kind]);
}

static int take_node(struct words *w, const char *before, char node[GD_METRIC_TEXT],
                     struct gd_err *err)
{
    if (!next_word(w)) {
        return gd_fail(err, GD_EINVAL, "a node is missing after '%s'", before);
    }
    memcpy(node, w->word, GD_METRIC_TEXT);
    return GD_OK;
}

static int take_option(struct gd_metric_spec *spec, struct words *w, struct gd_err *err)
{
    const char *word = w->word, *value = strchr(word, '=');
    if (strcmp(word, "of") == 0) {
        return take_node(w, "of", spec->outputs, err);
    }
    if (strcmp(word, "against") == 0) {
        return take_node(w, "against", spec->labels, err);
    }
    if (strcmp(word, "by") == 0) {
        const char *when = next_or(w, "");
        spec->by_step = strcmp(when, "step") == 0;
        return spec->by_step || strcmp(when, "epoch") == 0
                   ? GD_OK
                   : gd_fail(err, GD_EINVAL, "write 'by step' or 'by epoch'");
    }
    bool *flag = strcmp(word, "ranks") == 0           ? &spec->ranks
                 : strcmp(word, "one_hot") == 0       ? &spec->one_hot
                 : strcmp(word, "probabilities") == 0 ? &spec->probabilities
                                                      : NULL;
    if (flag) {
        *flag = true;
        return GD_OK;
    }
    return take_value(spec, word, value ? value + 1 : "", err);
}

/* ---- expressions in the text ----------------------------------------------------------------- */

static bool is_end(const char *at, const char *word)
{
    size_t len = strlen(word);
    return isspace((unsigned char)at[0]) && strncmp(at + 1, word, len) == 0 &&
           (at[1 + len] == '\0' || isspace((unsigned char)at[1 + len]));
}

/* Copies up to one of the words, without blanks at the ends. */
static bool copy_until(const char **at, const char *const *words, char to[GD_METRIC_TEXT])
{
    const char *from = *at + strspn(*at, " \t"), *end = from;
    while (*end) {
        bool over = false;
        for (int i = 0; words[i]; i++) {
            over = over || is_end(end, words[i]);
        }
        if (over) {
            break;
        }
        end++;
    }
    *at = end;
    while (end > from && isspace((unsigned char)end[-1])) {
        end--;
    }
    size_t len = (size_t)(end - from);
    if (len == 0 || len >= GD_METRIC_TEXT) {
        return false;
    }
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

static int take_program(struct gd_metric_spec *spec, struct words *w, struct gd_err *err)
{
    static const char *const result[] = {"result", NULL};
    static const char *const options[] = {"of", "against", "by", "ranks", NULL};
    struct metric_program *program = NULL;
    spec->kind = GD_METRIC_CUSTOM;
    bool ok = copy_until(&w->at, result, spec->update) && next_word(w) &&
              strcmp(w->word, "result") == 0 && copy_until(&w->at, options, spec->result);
    if (!ok) {
        return gd_fail(err, GD_EINVAL,
                       "write NAME = update SUM += EXPR, ... result EXPR: \"help metric\" has an "
                       "example");
    }
    int rc = metric_program_create(spec, &program, err);
    metric_program_destroy(program);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int take_kind(struct gd_metric_spec *spec, const char *word, struct gd_err *err)
{
    int kind = find_kind(word);
    if (kind < 0) {
        return unknown_kind(word, err);
    }
    spec->kind = (enum gd_metric_kind)kind;
    return GD_OK;
}

static int take_head(struct gd_metric_spec *spec, struct words *w, struct gd_err *err)
{
    struct words ahead;
    if (!next_word(w)) {
        return gd_fail(err, GD_EINVAL, "name a metric, such as accuracy");
    }
    snprintf(spec->name, sizeof(spec->name), "%.*s", GD_METRIC_NAME - 1, w->word);
    char first[64];
    snprintf(first, sizeof(first), "%.63s", w->word);
    ahead = *w;
    const char *second = next_or(&ahead, "");
    if (strcmp(second, "=") == 0) {
        int rc = check_name(first, err);
        *w = ahead;
        second = next_or(w, "");
        return rc != GD_OK                     ? rc
               : strcmp(second, "update") == 0 ? take_program(spec, w, err)
                                               : take_kind(spec, second, err);
    }
    if (strcmp(second, "from") == 0) {
        int rc = check_name(first, err);
        *w = ahead;
        spec->kind = GD_METRIC_FILE;
        return rc != GD_OK ? rc : take_node(w, "from", spec->file, err);
    }
    int rc = take_kind(spec, first, err);
    snprintf(spec->name, sizeof(spec->name), "%s",
             spec->kind == GD_METRIC_LOSS ? "mean_loss" : kinds[spec->kind]);
    return rc;
}

int gd_metric_parse(const char *text, struct gd_metric_spec *ret, struct gd_err *err)
{
    struct gd_metric_spec spec = {.k = 5, .of_class = -1};
    struct words w = {.at = text};
    if (strlen(text) > MAX_TEXT) {
        return gd_fail(err, GD_ELIMIT, "a metric of more than %d bytes", MAX_TEXT);
    }
    int rc = take_head(&spec, &w, err);
    while (rc == GD_OK && next_word(&w)) {
        rc = take_option(&spec, &w, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    bool alone = spec.kind == GD_METRIC_LOSS;
    if ((spec.outputs[0] == '\0') != (spec.labels[0] == '\0') && !alone) {
        return gd_fail(err, GD_EINVAL, "write both nodes: of OUTPUTS against LABELS");
    }
    if (spec.ranks && spec.kind == GD_METRIC_FILE) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a metric from a file cannot be computed over ranks: it has no counts that "
                       "add up");
    }
    *ret = spec;
    return GD_OK;
}

static void put_node(struct gd_buf *out, const char *word, const char *node)
{
    if (node[0]) {
        gd_buf_printf(out, " %s ", word);
        gd_buf_put_quoted(out, node);
    }
}

void gd_metric_text(const struct gd_metric_spec *spec, struct gd_buf *out)
{
    gd_buf_puts(out, spec->name);
    if (spec->kind == GD_METRIC_CUSTOM) {
        gd_buf_printf(out, " = update %s result %s", spec->update, spec->result);
    } else if (spec->kind == GD_METRIC_FILE) {
        put_node(out, "from", spec->file);
    } else if (strcmp(spec->name, kinds[spec->kind]) != 0) {
        gd_buf_printf(out, " = %s", kinds[spec->kind]);
    }
    if (spec->kind == GD_METRIC_TOPK) {
        gd_buf_printf(out, " k=%lld", (long long)spec->k);
    }
    if (spec->average != GD_AVERAGE_DEFAULT) {
        gd_buf_printf(out, " average=%s", averages[spec->average]);
    }
    if (spec->of_class >= 0) {
        gd_buf_printf(out, " class=%lld", (long long)spec->of_class);
    }
    if (spec->has_ignore) {
        gd_buf_printf(out, " ignore=%lld", (long long)spec->ignore);
    }
    if (spec->has_threshold) {
        gd_buf_printf(out, " threshold=%.17g", spec->threshold);
    }
    put_node(out, "of", spec->outputs);
    put_node(out, "against", spec->labels);
    gd_buf_printf(out, "%s%s%s%s%s", spec->per_sample ? " per=sample" : "",
                  spec->one_hot ? " one_hot" : "", spec->probabilities ? " probabilities" : "",
                  spec->by_step ? " by step" : "", spec->ranks ? " ranks" : "");
}
