// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <string.h>
#include <strings.h>

static const char *const kind_names[GD_NODE_KIND_COUNT] = {
    [GD_NODE_AUTO] = "auto",
    [GD_NODE_OTHER] = "other",
    [GD_NODE_WEIGHT] = "weight",
    [GD_NODE_GRADIENT] = "gradient",
    [GD_NODE_ACTIVATION] = "activation",
    [GD_NODE_PARAMETER] = "parameter",
    [GD_NODE_CONSTANT] = "constant",
    [GD_NODE_COMPILED] = "compiled",
};

static const char *const activation_types[] = {
    "elu",   "fastgelu", "gelu",  "hsigmoid", "hswish",  "leakyrelu", "logsigmoid", "logsoftmax",
    "prelu", "relu",     "relu6", "reluv2",   "sigmoid", "softmax",   "tanh",
};

const char *gd_node_kind_name(enum gd_node_kind kind)
{
    unsigned index = (unsigned)kind;

    return index < GD_NODE_KIND_COUNT ? kind_names[index] : "unknown";
}

enum graph_type_class graph_type_classify(const char *type)
{
    if (strcasecmp(type, "Parameter") == 0) {
        return GRAPH_TYPE_PARAMETER;
    }
    if (strcasecmp(type, "Const") == 0) {
        return GRAPH_TYPE_CONST;
    }
    for (size_t i = 0; i < sizeof(activation_types) / sizeof(activation_types[0]); i++) {
        if (strcasecmp(type, activation_types[i]) == 0) {
            return GRAPH_TYPE_ACTIVATION;
        }
    }
    return GRAPH_TYPE_PLAIN;
}

static bool ends_with(const char *text, size_t len, const char *suffix)
{
    size_t suffix_len = strlen(suffix);

    return len >= suffix_len && strcasecmp(text + len - suffix_len, suffix) == 0;
}

static bool is_gradient_name(const char *name, size_t len)
{
    return len >= 9 && strncasecmp(name, "gradients", 9) == 0 && (len == 9 || name[9] == '/');
}

enum gd_node_kind graph_classify(const char *name, size_t len, enum graph_type_class type)
{
    bool gradient = is_gradient_name(name, len);

    switch (type) {
    case GRAPH_TYPE_PARAMETER:
        if (!gradient && (ends_with(name, len, ".weight") || ends_with(name, len, ".bias")) &&
            !strcasestr(name, "optimizer-")) {
            return GD_NODE_WEIGHT;
        }
        return GD_NODE_PARAMETER;
    case GRAPH_TYPE_CONST: return GD_NODE_CONSTANT;
    case GRAPH_TYPE_ACTIVATION: return gradient ? GD_NODE_GRADIENT : GD_NODE_ACTIVATION;
    case GRAPH_TYPE_PLAIN: break;
    }
    return gradient ? GD_NODE_GRADIENT : GD_NODE_OTHER;
}

enum gd_node_kind gd_node_classify(const char *name, const char *type)
{
    return graph_classify(name, strlen(name), graph_type_classify(type));
}
