// SPDX-License-Identifier: GPL-3.0-or-later
/* Selector words for what a node is to the training. */
#include <string.h>

#include "engine/graph/part.h"
#include "engine/graph/selector_impl.h"

static const char *const words[] = {
    [WORD_TRAINABLE] = "trainable", [WORD_FROZEN] = "frozen", [WORD_LORA] = "lora",
    [WORD_MODEL] = "model",         [WORD_EVAL] = "eval",     [WORD_OUTSIDE] = "outside",
};

bool selector_find_word(const char *text, enum selector_word *ret)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = (enum selector_word)i;
            return true;
        }
    }
    return false;
}

/* A component begins with "lora_", as PEFT names adapters. */
static bool is_of_adapter(const char *name)
{
    for (const char *at = name; (at = strstr(at, "lora_")); at++) {
        if (at == name || at[-1] == '/' || at[-1] == '.') {
            return true;
        }
    }
    return false;
}

/* Below a module; where no classes are known, below any scope. */
static bool is_in_module(const struct gd_graph *graph, gd_scope_id scope)
{
    struct gd_scope_info info;
    bool any = scope != 0;

    while (gd_graph_scope(graph, scope, &info) && info.parent != GD_NO_SCOPE &&
           info.class[0] == '\0') {
        scope = info.parent;
    }
    return any && (info.class[0] != '\0' || !gd_graph_has_classes(graph));
}

bool selector_word_means(enum selector_word word, const struct gd_graph *graph, gd_node_id node,
                         const struct gd_node_info *info)
{
    bool is_frozen = gd_node_attr(info, GD_FROZEN) && gd_node_attr(info, GD_FROZEN)[0] != '\0';
    enum gd_part part = gd_graph_part(graph, node);

    switch (word) {
    case WORD_TRAINABLE: return info->kind == GD_NODE_WEIGHT && !is_frozen;
    case WORD_FROZEN: return info->kind == GD_NODE_WEIGHT && is_frozen;
    case WORD_LORA: return part <= GD_PART_GRADIENT && is_of_adapter(info->own_name);
    case WORD_MODEL:
        return part <= GD_PART_OUTSIDE &&
               (info->kind == GD_NODE_WEIGHT || is_in_module(graph, info->scope));
    case WORD_OUTSIDE:
        return part <= GD_PART_OUTSIDE && info->kind != GD_NODE_WEIGHT &&
               !is_in_module(graph, info->scope);
    case WORD_EVAL: return part == GD_PART_EVALUATION;
    }
    return false;
}
