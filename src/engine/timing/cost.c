// SPDX-License-Identifier: GPL-3.0-or-later
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/timing/cost.h"

#define SHORTEST 1e-5 /* seconds: below, the time is that of the call */

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Bare names: in lower case, without a namespace, "_", and what says that it is of a backward pass.
 */
static const char *const matmuls[] = {
    "linear",    "addmm",          "mm",          "matmul",         "bmm",      "baddbmm",
    "dense",     "gemm",           "batchmatmul", "rmatmul",        "matmulv2", "batchmatmulv2",
    "matmulext", "batchmatmulext", "addbmm",      "linearfunction", NULL};
static const char *const elementwise[] = {
    "add",    "sub",    "mul",     "div",        "relu",     "gelu",       "silu",      "sigmoid",
    "tanh",   "exp",    "log",     "sqrt",       "rsqrt",    "neg",        "abs",       "pow",
    "square", "clamp",  "where",   "maskedfill", "dropout",  "copy",       "clone",     "truediv",
    "iadd",   "imul",   "biasadd", "realdiv",    "fill",     "zero",       "leakyrelu", "addn",
    "addext", "subext", "muls",    "threshold",  "hardtanh", "contiguous", "tensoradd", NULL};
static const char *const casts[] = {"to",   "tocopy", "float", "half", "bfloat16", "double",
                                    "type", "typeas", "cast",  "long", "int",      NULL};
static const char *const layouts[] = {"contiguous", "transdata", "contiguousformat", NULL};

static bool is_one_of(const char *bare, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(bare, *list) == 0) {
            return true;
        }
    }
    return false;
}

static void cut_end(char *bare, const char *end)
{
    size_t len = strlen(bare), cut = strlen(end);
    if (len > cut && strcmp(bare + len - cut, end) == 0) {
        bare[len - cut] = '\0';
    }
}

static void make_bare(const char *type, char *bare, size_t size)
{
    size_t used = 0;
    const char *colon = strrchr(type, ':');
    for (const char *p = colon ? colon + 1 : type; *p && used + 1 < size; p++) {
        if (*p != '_' && *p != '.') {
            bare[used++] = (char)tolower((unsigned char)*p);
        }
    }
    bare[used] = '\0';
    while (used > 0 && isdigit((unsigned char)bare[used - 1]) && strstr(bare, "backward")) {
        bare[--used] = '\0'; /* AddmmBackward0 */
    }
    cut_end(bare, "backward");
    cut_end(bare, "grad");
}

enum gd_time_kind gd_time_kind_of(const char *type)
{
    char bare[64];
    make_bare(type, bare, sizeof(bare));
    if (is_one_of(bare, matmuls) || strncmp(bare, "matmul", 6) == 0) {
        return GD_KIND_MATMUL;
    }
    if (strncmp(bare, "conv", 4) == 0 || strstr(bare, "convolution") ||
        strncmp(bare, "depthwiseconv", 13) == 0) {
        return GD_KIND_CONV;
    }
    return is_one_of(bare, layouts)       ? GD_KIND_LAYOUT
           : is_one_of(bare, casts)       ? GD_KIND_CAST
           : is_one_of(bare, elementwise) ? GD_KIND_ELEMENTWISE
                                          : GD_KIND_OTHER;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Negative: unknown. */
static double count_of(const struct gd_time_tensor *tensor)
{
    double count = 1;
    if (tensor->rank < 0 || gd_dtype_size(tensor->dtype) == 0) {
        return -1;
    }
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->dim[i] < 0) {
            return -1;
        }
        count *= (double)tensor->dim[i];
    }
    return count;
}

static double bytes_of(const struct gd_time_tensor *tensor)
{
    double count = count_of(tensor);
    return count < 0 ? -1 : count * (double)gd_dtype_size(tensor->dtype);
}

/* 2 M N K; K is the last axis of the first matrix. addmm's first input is the bias. */
static double matmul_flops(const struct gd_time_operator *op, double out)
{
    int first = op->in_count > 2 && (strstr(op->type, "addmm") || strstr(op->type, "baddbmm"));
    const struct gd_time_tensor *in = &op->in[first];
    if (op->in_count < first + 2 || in->rank < 1 || count_of(in) < 0) {
        return -1;
    }
    return 2 * out * (double)in->dim[in->rank - 1];
}

/* 2 for each weight that contributes to an element of the output. */
static double conv_flops(const struct gd_time_operator *op, double out)
{
    const struct gd_time_tensor *weight = &op->in[1];
    if (op->in_count < 2 || weight->rank < 3 || weight->dim[0] <= 0 || count_of(weight) < 0) {
        return -1;
    }
    bool transposed = strstr(op->type, "ranspose") != NULL;
    double of_each = count_of(weight) / (double)weight->dim[0];
    return transposed ? 2 * count_of(&op->in[0]) * of_each : 2 * out * of_each;
}

/* PyTorch's AddmmBackward0 and MindSpore's MatMulBackward: a live session reports them with the
 * shapes of the forward operator. Their pass computes two products of that size, and reads and
 * writes about twice as much. */
static bool is_node_of_backward(const char *type)
{
    return strstr(type, "Backward") && !strchr(type, ':');
}

void gd_time_cost_of(const struct gd_time_operator *op, double *flops, double *bytes)
{
    enum gd_time_kind kind = gd_time_kind_of(op->type);
    double out = count_of(&op->out), sum = bytes_of(&op->out);
    *flops = *bytes = -1;
    if (out < 0 || kind == GD_KIND_OTHER || op->in_count == 0) {
        return;
    }
    for (int i = 0; i < op->in_count; i++) {
        double in = bytes_of(&op->in[i]);
        if (in < 0) {
            return;
        }
        sum += in;
    }
    bool products = kind == GD_KIND_MATMUL || kind == GD_KIND_CONV;
    bool backward = strstr(op->type, "ackward") != NULL;
    if (products && backward && !is_node_of_backward(op->type)) {
        return; /* aten::convolution_backward has other inputs */
    }
    *flops = kind == GD_KIND_MATMUL ? matmul_flops(op, out)
             : kind == GD_KIND_CONV ? conv_flops(op, out)
                                    : out;
    *flops = *flops > 0 && products && backward ? 2 * *flops : *flops;
    *bytes = *flops < 0 ? -1 : products && backward ? 2 * sum : sum;
}

struct gd_time_balance gd_time_balance_of(const struct gd_time_report *report)
{
    struct gd_time_balance balance = {0};
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[i];
        enum gd_time_kind kind = gd_time_kind_of(op->type);
        double each = op->calls > 0 ? op->seconds / (double)op->calls : 0;
        if (each < SHORTEST || op->bytes <= 0 || op->flops <= 0) {
            continue;
        }
        if ((kind == GD_KIND_MATMUL || kind == GD_KIND_CONV) && op->flops / each > balance.flops) {
            balance.flops = op->flops / each;
            balance.compute = op;
        } else if (kind != GD_KIND_MATMUL && kind != GD_KIND_CONV &&
                   op->bytes / each > balance.bytes) {
            balance.bytes = op->bytes / each;
            balance.memory = op;
        }
    }
    return balance;
}

enum gd_time_bound gd_time_bound_of(const struct gd_time_balance *balance, double flops,
                                    double bytes)
{
    if (!(balance->flops > 0 && balance->bytes > 0 && flops > 0 && bytes > 0)) {
        return GD_BOUND_UNKNOWN;
    }
    return flops / bytes < balance->flops / balance->bytes ? GD_BOUND_MEMORY : GD_BOUND_COMPUTE;
}

const char *gd_time_bound_name(enum gd_time_bound bound)
{
    return bound == GD_BOUND_MEMORY ? "memory" : bound == GD_BOUND_COMPUTE ? "compute" : "";
}
