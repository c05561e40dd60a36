// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Converts names to a common spelling, PyTorch's: BatchNorm's gamma becomes "weight", a Cell a
 * Module, Dense Linear. Of a MindSpore scope ("Default/net-Net/conv1-Conv2d/Conv2D-op12") the path
 * of names and the operator remain ("net.conv1.conv2d"), also if a dump has flattened it to
 * "Default_net-Net_conv1-Conv2d_Conv2D-op12". Of a dumped file's name, type and number are dropped
 * ("17_", "_float32_17").
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "compare/match.h"

struct word {
    const char *from, *to;
};

static const struct word parameter_words[] = {
    {"gamma", "weight"},
    {"beta", "bias"},
    {"moving_mean", "running_mean"},
    {"moving_variance", "running_var"},
    {"embedding_table", "weight"},
    {"a", "weight"},
};

static const struct word node_words[] = {
    {"Cell", "Module"},
    {"Dense", "Linear"},
    {"dense", "linear"},
    {"MatMul", "linear"},
    {"matmul", "linear"},
    {"MintFunctional", "Functional"},
    {"Torch", "Functional"},
    {"Mint", "Functional"},
    {"SoftmaxCrossEntropyWithLogits", "CrossEntropyLoss"},
};

/* Calls with different names in the frameworks; of nearly all others only the module differs. */
static const struct word call_words[] = {
    {"bidense", "bilinear"},       {"equal", "eq"},       {"swapaxes", "transpose"},
    {"asnumpy", "numpy"},          {"cauchy_", "cauchy"}, {"fill_diagonal_", "fill_diagonal"},
    {"gather_elements", "gather"},
};

static const struct word state_words[] = {
    {"exp_avg", "m1"},  {"moment1", "m1"},        {"adam_m", "m1"},         {"exp_avg_sq", "m2"},
    {"moment2", "m2"},  {"adam_v", "m2"},         {"momentum_buffer", "b"}, {"moments", "b"},
    {"accum", "b"},     {"max_exp_avg_sq", "m3"}, {"vhat", "m3"},           {"moments1", "m1"},
    {"moments2", "m2"},
};

#define MAX_FLAT     4200
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_word(const char *at, size_t len, const char *word)
{
    return strlen(word) == len && strncmp(at, word, len) == 0;
}

bool gd_name_is_alone(const char *name)
{
    const char *dot = strrchr(name, '.');

    return strcmp(dot ? dot + 1 : name, "num_batches_tracked") == 0;
}

const char *gd_name_state(const char *name, int64_t *number, const char **parameter)
{
    const char *state = strstr(name, "state"), *dot = strrchr(name, '.');

    *number = -1;
    *parameter = NULL;
    if (state && (state[5] == '[' || state[5] == '.') && isdigit((unsigned char)state[6]) && dot) {
        *number = strtoll(state + 6, NULL, 10);
        if (strcmp(dot + 1, "step") == 0) {
            return "step";
        }
        for (size_t i = 0; i < COUNT(state_words); i++) {
            if (strcmp(dot + 1, state_words[i].from) == 0) {
                return state_words[i].to;
            }
        }
        return dot + 1;
    }
    for (size_t i = 0; i < COUNT(state_words); i++) {
        size_t len = strlen(state_words[i].from);

        if (strncmp(name, state_words[i].from, len) == 0 && name[len] == '.') {
            *parameter = name + len + 1;
            return state_words[i].to;
        }
    }
    return NULL;
}

bool gd_name_update(const char *name, const char **state, char *parameter, size_t size)
{
    const char *path = strncmp(name, "optimizer/", 10) == 0 ? strchr(name + 10, '/') : NULL;
    const char *dot = path ? strrchr(path, '.') : NULL;
    size_t len = path ? strlen(path + 1) : 0;

    *state = NULL;
    for (size_t i = 0; dot && !*state && i < COUNT(state_words); i++) {
        if (strcmp(dot + 1, state_words[i].from) == 0) {
            *state = state_words[i].to;
            len = (size_t)(dot - path) - 1;
        }
    }
    if (len == 0 || len >= size) {
        return false;
    }
    memcpy(parameter, path + 1, len);
    parameter[len] = '\0';
    return true;
}

/* ---- tails and heads of files ---------------------------------------------------------------- */

static bool is_number(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)at[i])) {
            return false;
        }
    }
    return len > 0;
}

/* "17_conv1" -> "conv1" */
static const char *without_head(const char *name)
{
    const char *at = name;

    while (isdigit((unsigned char)*at)) {
        at++;
    }
    return at > name && (*at == '_' || *at == '-') && at[1] ? at + 1 : name;
}

/* The length of "conv1" in "conv1_float32_17". */
static size_t without_tail(const char *name, size_t len)
{
    size_t at = len, type;
    char word[24];

    while (at > 0 && isdigit((unsigned char)name[at - 1])) {
        at--;
    }
    if (at == len || at < 2 || name[at - 1] != '_') {
        return len;
    }
    type = at - 1;
    while (type > 0 && name[type - 1] != '_') {
        type--;
    }
    if (type == 0 || at - 1 - type >= sizeof(word)) {
        return len;
    }
    memcpy(word, name + type, at - 1 - type);
    word[at - 1 - type] = '\0';
    return gd_stored_from_name(word) != GD_STORED_NONE && type > 1 ? type - 1 : len;
}

/* ---- building -------------------------------------------------------------------------------- */

struct out {
    char *at, *end;
    bool any;
};

static void put_text(struct out *out, const char *text, size_t len)
{
    if (len < (size_t)(out->end - out->at)) {
        memcpy(out->at, text, len);
        out->at += len;
        *out->at = '\0';
    }
}

static const char *find_word(const struct word *words, size_t count, const char *at, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (is_word(at, len, words[i].from)) {
            return words[i].to;
        }
    }
    return NULL;
}

static const char *node_word(const char *at, size_t len)
{
    return find_word(node_words, COUNT(node_words), at, len);
}

/* Writes a component word by word: "NN_Dense_0" becomes "NN_Linear_0". */
static void put_component(struct out *out, const char *at, size_t len)
{
    const char *call = find_word(call_words, COUNT(call_words), at, len);

    if (out->any) {
        put_text(out, ".", 1);
    }
    out->any = true;
    if (call) {
        put_text(out, call, strlen(call));
        return;
    }
    while (len > 0) {
        size_t word = 0;
        const char *other;

        while (word < len && at[word] != '_') {
            word++;
        }
        other = node_word(at, word);
        put_text(out, other ? other : at, other ? strlen(other) : word);
        at += word;
        len -= word;
        if (len > 0) {
            put_text(out, "_", 1);
            at++;
            len--;
        }
    }
}

static void put_last(struct out *out, const char *at, size_t len)
{
    for (size_t i = 0; i < COUNT(parameter_words); i++) {
        if (is_word(at, len, parameter_words[i].from) && out->any) {
            put_text(out, ".", 1);
            put_text(out, parameter_words[i].to, strlen(parameter_words[i].to));
            return;
        }
    }
    put_component(out, at, len);
}

/* The position of the dash in "Conv2D-op12" or "conv1-Conv2d"; len: none. */
static size_t dash_of(const char *at, size_t len)
{
    size_t dash = len;

    for (size_t i = 0; i < len; i++) {
        dash = at[i] == '-' ? i : dash;
    }
    return dash;
}

/* Writes a scope's operator in lower case without its number; names without a number stay. */
static void put_operator(struct out *out, const char *at, size_t len)
{
    size_t dash = dash_of(at, len);
    char small[128];
    const char *other;

    if (dash == len || len - dash < 4 || strncmp(at + dash, "-op", 3) != 0 ||
        !is_number(at + dash + 3, len - dash - 3) || dash >= sizeof(small)) {
        put_last(out, at, len);
        return;
    }
    for (size_t i = 0; i < dash; i++) {
        small[i] = (char)tolower((unsigned char)at[i]);
    }
    other = node_word(small, dash);
    put_text(out, out->any ? "." : "", out->any ? 1 : 0);
    put_text(out, other ? other : small, other ? strlen(other) : dash);
    out->any = true;
}

/* Restores the slashes of "Default_conv1-Conv2d_Conv2D-op12", as dumps flatten scopes: after a
 * cell's class and before the operator; other parts may contain a _. False: not a name of this
 * form. */
static bool unflatten_scopes(const char *name, char ret[MAX_FLAT])
{
    size_t len = strlen(name), head = strncmp(name, "Gradients_Default_", 18) == 0 ? 18 : 8, last;
    bool class = false;

    if (len >= MAX_FLAT || (head == 8 && strncmp(name, "Default_", 8) != 0)) {
        return false;
    }
    memcpy(ret, name, len + 1);
    last = dash_of(name, len);
    if (last <= head || last == len || strncmp(name + last, "-op", 3) != 0 ||
        !is_number(name + last + 3, len - last - 3)) {
        return false;
    }
    ret[head - 1] = '/';
    if (head == 18) {
        ret[9] = '/';
    }
    for (size_t i = head; i < last; i++) {
        if (class && name[i] == '_') {
            ret[i] = '/';
        }
        class = name[i] == '-' || (class && isalnum((unsigned char)name[i]));
    }
    while (last > head && ret[last - 1] != '_' && ret[last - 1] != '/') {
        last--;
    }
    ret[last - 1] = '/';
    return true;
}

void gd_name_common(const char *name, char *ret, size_t size)
{
    struct out out = {.at = ret, .end = ret + size};
    char flat[MAX_FLAT];
    const char *slash, *at;
    bool scope, gradient;
    size_t len;

    ret[0] = '\0';
    name = unflatten_scopes(name, flat) ? flat : name;
    slash = strrchr(name, '/');
    at = name;
    scope = strncmp(name, "Default/", 8) == 0 || strncmp(name, "Gradients/", 10) == 0;
    if (!scope) {
        at = slash ? name : without_head(name);
    }
    len = without_tail(at, strlen(at));
    gradient = len > 5 && strncmp(at + len - 5, ".grad", 5) == 0;
    len -= gradient ? 5 : 0;
    while (len > 0) {
        size_t one = 0;
        bool last;

        while (one < len && at[one] != '/' && (scope || at[one] != '.')) {
            one++;
        }
        last = one == len;
        if (last) {
            (scope ? put_operator : put_last)(&out, at, one);
        } else if (!is_word(at, one, "Default") && !is_word(at, one, "bn2d")) {
            put_component(&out, at, scope ? dash_of(at, one) : one);
        }
        at += one;
        len -= one;
        if (len > 0) {
            at++;
            len--;
        }
    }
    if (gradient) {
        put_text(&out, ".grad", 5);
    }
}
