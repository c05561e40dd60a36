// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Operators of different frameworks that compute the same. Names are compared without case and
 * underscores: "conv2d", "Conv2D" and "Conv2d" are equal. In a MindSpore graph, a layer with bias
 * is two operators, the second of which makes what the other framework calls the layer's output.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compare/match_impl.h"

#define NAME_SIZE    64
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each line lists equivalent names, separated by blanks. */
static const char *const alike[] = {
    " conv1d conv2d conv3d convolution mkldnnconvolution ",
    " convtranspose1d convtranspose2d convtranspose3d conv2dtranspose conv2dbackpropinput ",
    " linear dense matmul matmulv2 mm addmm bmm baddbmm batchmatmul batchmatmulv2 ",
    " batchnorm batchnorm1d batchnorm2d batchnorm3d nativebatchnorm batchnormext syncbatchnorm ",
    " layernorm nativelayernorm layernormv3 layernormext ",
    " groupnorm nativegroupnorm ",
    " maxpool maxpool1d maxpool2d maxpool3d maxpoolwithindices maxpool2dwithindices ",
    " avgpool avgpool1d avgpool2d avgpool3d adaptiveavgpool1d adaptiveavgpool2d ",
    " flatten reshape view reshapealias unsafeview ",
    " transpose permute t ",
    (" crossentropy crossentropyloss softmaxcrossentropywithlogits "
     "sparsesoftmaxcrossentropywithlogits "),
    " nllloss nlllossnd ",
    " bcewithlogitsloss binarycrossentropywithlogits ",
    " bceloss binarycrossentropy ",
    " mse mseloss ",
    " embedding embeddinglookup gather gatherv2 indexselect ",
    " relu reluv2 ",
    " gelu geluext ",
    " silu swish ",
    " add tensoradd addext ",
    " div realdiv truediv ",
    " cat concat ",
    " sub subext ",
    " mean reducemean meanext ",
    " sum reducesum sumext ",
    " scaleddotproductattention flashattentionscore ",
};

/* Keeps only lower-case letters and digits; "" if too long to be known. */
static void squeeze_name(const char *op, char ret[NAME_SIZE])
{
    size_t len = 0;

    for (; *op; op++) {
        if (!isalnum((unsigned char)*op)) {
            continue;
        }
        if (len + 1 == NAME_SIZE) {
            len = 0;
            break;
        }
        ret[len++] = (char)tolower((unsigned char)*op);
    }
    ret[len] = '\0';
}

static const char *line_of(const char *squeezed)
{
    char word[NAME_SIZE + 2];

    snprintf(word, sizeof(word), " %s ", squeezed);
    for (size_t i = 0; squeezed[0] && i < COUNT(alike); i++) {
        if (strstr(alike[i], word)) {
            return alike[i];
        }
    }
    return NULL;
}

static bool is_bias(const char *squeezed)
{
    return strcmp(squeezed, "biasadd") == 0;
}

/* A bias may be added to its result. */
static bool takes_bias(const char *squeezed)
{
    const char *line = line_of(squeezed);

    return line && (line == alike[0] || line == alike[1] || line == alike[2]);
}

bool gd_op_is_alike(const char *a, const char *b)
{
    char x[NAME_SIZE], y[NAME_SIZE];

    squeeze_name(a, x);
    squeeze_name(b, y);
    if (!x[0] || !y[0]) {
        return false;
    }
    return strcmp(x, y) == 0 || (is_bias(x) && takes_bias(y)) || (is_bias(y) && takes_bias(x)) ||
           (line_of(x) && line_of(x) == line_of(y));
}

/* "reluv2" of "ReluV2Backward0" */
static void squeeze_back(const char *op, char ret[NAME_SIZE])
{
    char *end;

    squeeze_name(op, ret);
    end = strstr(ret, "backward");
    if (end && strspn(end + 8, "0123456789") == strlen(end + 8)) {
        *end = '\0';
    }
}

bool gd_unit_is_back(const struct gd_unit *unit)
{
    return strncmp(unit->name, "backward/", 9) == 0;
}

bool gd_op_is_alike_back(const struct gd_unit *a, const struct gd_unit *b)
{
    char x[NAME_SIZE], y[NAME_SIZE];

    if (!gd_unit_is_back(a) || !gd_unit_is_back(b) || strcmp(a->op, b->op) == 0) {
        return true;
    }
    squeeze_back(a->op, x);
    squeeze_back(b->op, y);
    return x[0] && y[0] && !takes_bias(x) && !takes_bias(y) &&
           (strcmp(x, y) == 0 || (line_of(x) && line_of(x) == line_of(y)));
}

static size_t scope_length(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? (size_t)(slash - name) : 0;
}

/* msprobe's "fc1/Functional.linear.0.forward", after which "fc1/Linear.forward.0" has the same
 * output again. */
static bool is_call(const char *own_name)
{
    static const char *const heads[] = {"Functional.", "Tensor.", "Torch.", "Mint", "NPU."};

    for (size_t i = 0; i < COUNT(heads); i++) {
        if (strncmp(own_name, heads[i], strlen(heads[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool gd_op_changes_input(const char *op, uint16_t position)
{
    char x[NAME_SIZE];

    squeeze_name(op, x);
    if (line_of(x) != line_of("batchnorm")) {
        return false;
    }
    /* running mean and variance */
    return strcmp(op, "batch_norm") == 0 ? position == 1 || position == 2
                                         : position == 3 || position == 4;
}

enum gd_goes_on gd_unit_goes_on(const struct gd_table *table, uint32_t unit)
{
    char x[NAME_SIZE], y[NAME_SIZE];
    const struct gd_unit *one = &table->unit[unit], *next = one + 1;
    size_t len = scope_length(one->name);

    if (unit + 1 >= table->unit_count || len == 0 || len != scope_length(next->name) ||
        strncmp(one->name, next->name, len) != 0 || one->phase != next->phase) {
        return GD_GOES_NOT;
    }
    squeeze_name(one->op, x);
    squeeze_name(next->op, y);
    if (takes_bias(x) && is_bias(y)) {
        return GD_GOES_ON_BIAS;
    }
    return gd_op_is_alike(one->op, next->op) && is_call(one->name + len + 1) &&
                   !is_call(next->name + len + 1)
               ? GD_GOES_ON_LAYER
               : GD_GOES_NOT;
}
