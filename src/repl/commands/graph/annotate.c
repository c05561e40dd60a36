// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: annotate */
#include <stdlib.h>

#include "repl/values/nodes.h"
#include "repl/values/srcfile.h"

struct line_counts {
    struct line_count {
        uint32_t nodes;
        const char *code; /* text of the line, if the stacks contain it; else "" */
    } * at;               /* by line, 1 ... limit - 1 */
    uint32_t limit;
    bool has_code;
    const char *path; /* as the stacks spell it */
};

static int grow_counts(struct line_counts *counts, uint32_t line)
{
    if (line < counts->limit) {
        return GD_OK;
    }
    if (line >= 10 * SRCFILE_MAX_LINES) {
        return GD_ELIMIT;
    }
    uint32_t limit = 2 * line + 64;
    struct line_count *grown = realloc(counts->at, limit * sizeof(*grown));
    if (!grown) {
        return GD_ENOMEM;
    }
    for (uint32_t i = counts->limit; i < limit; i++) {
        grown[i] = (struct line_count){.code = ""};
    }
    counts->at = grown;
    counts->limit = limit;
    return GD_OK;
}

static void count_lines(struct command_call *call, const struct node_list *list, const char *file,
                        struct line_counts *counts)
{
    for (size_t i = 0; i < list->count; i++) {
        uint32_t frames = 0;
        const struct gd_frame *frame = gd_graph_stack(call->session->graph, list->node[i], &frames);
        for (uint32_t f = 0; f < frames; f++) {
            if (frame[f].line > 0 && srcfile_path_matches(frame[f].file, file) &&
                grow_counts(counts, frame[f].line) == GD_OK) {
                struct line_count *at = &counts->at[frame[f].line];
                at->nodes++;
                at->code = frame[f].code[0] ? frame[f].code : at->code;
                counts->has_code = counts->has_code || frame[f].code[0];
                counts->path = frame[f].file;
            }
        }
    }
}

#define ANNOTATED_LINES 200

static void show_line(struct command_call *call, cJSON *lines, uint32_t number, uint32_t nodes,
                      const char *text)
{
    cJSON *item = out_push(lines);
    out_set(item, OUT_INT("line", number), OUT_INT("nodes", nodes), OUT_TEXT("text", text));
    out_say(call->out, item, "[{nodes:5}][{!nodes}     ] |{line:5}  {text}\n");
}

/* part NULL: the file cannot be read; the lines are those in the stacks. */
static void show_annotated(struct command_call *call, const struct srcfile_part *part,
                           const struct line_counts *counts, uint32_t first)
{
    cJSON *record = out_record(call->out, "annotated");
    out_set(record, OUT_TEXT("file", counts->path), OUT_BOOL("whole", part != NULL));
    out_say(call->out, record,
            "[{!whole}cannot read {file}; these lines were sent with the stacks:\n]");
    cJSON *lines = out_list(record, "lines");
    for (uint32_t i = 0; part && i < part->count; i++) {
        uint32_t number = part->first + i;
        uint32_t nodes = number < counts->limit ? counts->at[number].nodes : 0;
        show_line(call, lines, number, nodes, part->line[i]);
    }
    for (uint32_t i = first; !part && i < counts->limit; i++) {
        if (counts->at[i].nodes > 0) {
            show_line(call, lines, i, counts->at[i].nodes, out_safe(call, counts->at[i].code));
        }
    }
}

/* Lines around those that created nodes, or from `first` on. */
static int annotate_lines(struct command_call *call, const struct line_counts *counts,
                          uint32_t first, struct gd_err *err)
{
    struct srcfile_part part;
    uint32_t end = counts->limit, from = first;
    while (end > 1 && counts->at[end - 1].nodes == 0) {
        end--;
    }
    if (first == 0) {
        for (from = 1; from < end && counts->at[from].nodes == 0; from++) {
        }
        from = from > 2 ? from - 2 : 1;
    }
    uint32_t wanted = end + 2 > from ? end + 2 - from : srcfile_lines_wanted(call);
    wanted = wanted > ANNOTATED_LINES ? ANNOTATED_LINES : wanted;
    int rc = srcfile_read(call, counts->path, from, wanted, &part, err);
    if (rc == GD_OK || counts->has_code) {
        show_annotated(call, rc == GD_OK ? &part : NULL, counts, from);
        rc = GD_OK;
    }
    return rc;
}

static int run_annotate(struct command_call *call, struct gd_err *err)
{
    const char *file = NULL;
    uint32_t first = 0;
    if (!srcfile_parse_place(call, call->argv[0], &file, &first)) {
        file = call->argv[0];
    }
    struct node_list list = {0};
    struct line_counts counts = {0};
    gd_graph_search_source(call->session->graph, file, 0, node_list_add, &list);
    count_lines(call, &list, file, &counts);
    node_list_deinit(&list);
    int rc = counts.path ? annotate_lines(call, &counts, first, err)
                         : gd_fail(err, GD_ENOTFOUND,
                                   "no node was created in %.300s; `sources` lists the files",
                                   out_safe(call, file));
    free(counts.at);
    return rc;
}

const struct command cmd_annotate = {
    .name = "annotate",
    .aliases = "ps",
    .group = "graph",
    .usage = "annotate FILE[:LINE]",
    .summary = "Show a source file with the number of nodes that each line created",
    .help = "Without LINE, start at the first line that created a node.\n"
            "`info line FILE:LINE` lists the nodes of one line.",
    .examples = "annotate model.py\n"
                "annotate model.py:120",
    .args = {ARG_FILE},
    .flags = CMD_NEEDS_SESSION,
    .words = {1, 1, "specify one file"},
    .run = run_annotate,
};
