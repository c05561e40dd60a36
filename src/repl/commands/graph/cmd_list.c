// SPDX-License-Identifier: GPL-3.0-or-later
/* list, annotate, info source, info line: source files and what they made. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/commands.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/srcfile.h"
#include "repl/values/stacks.h"

/* ---- list ---------------------------------------------------------------------------------- */

static uint32_t lines_wanted(const struct command_call *call)
{
    int lines = call->debugger->settings.list_lines;
    return lines > 0 ? (uint32_t)lines : 10;
}

static uint32_t selected_frame(struct command_call *call)
{
    return inspect_frame(call, stack_node(call, call->session->current, false));
}

/* What is selected now: `list` goes on as long as nothing else is selected. */
static void note_selection(struct command_call *call, struct inspect_state *state)
{
    state->list_node = call->session->current;
    state->list_frame = selected_frame(call);
    state->list_stop = call->session->stop.sequence;
}

static bool selection_changed(struct command_call *call, const struct inspect_state *state)
{
    return state->list_node != call->session->current ||
           state->list_frame != selected_frame(call) ||
           state->list_stop != call->session->stop.sequence;
}

static int remember_place(struct command_call *call, struct inspect_state *state, const char *file,
                          const struct srcfile_part *part, uint32_t mark, struct gd_err *err)
{
    char *copy = strdup(file);
    if (!copy) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    free(state->list_file);
    state->list_file = copy;
    state->list_first = part->first;
    state->list_next = part->first + part->count;
    state->list_mark = mark;
    note_selection(call, state);
    return GD_OK;
}

static void show_lines(struct command_call *call, const char *file, const struct srcfile_part *part,
                       uint32_t mark)
{
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "source");
        inspect_add_text(call, record, "file", file);
        inspect_add_text(call, record, "path", part->path);
        if (mark > 0) {
            cJSON_AddNumberToObject(record, "mark", mark);
        }
        cJSON *lines = cJSON_AddArrayToObject(record, "lines");
        for (uint32_t i = 0; i < part->count; i++) {
            cJSON *item = cJSON_CreateObject();
            cJSON_AddNumberToObject(item, "line", part->first + i);
            inspect_add_text(call, item, "text", part->line[i]);
            cJSON_AddItemToArray(lines, item);
        }
        return;
    }
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t number = part->first + i;
        out_printf(call->out, "%s %5u  %s\n", number == mark ? "=>" : "  ", number, part->line[i]);
    }
}

/* Is this the line that ran? That one came with the stack and may be cut; tabs are blanks here. */
static bool is_what_ran(struct command_call *call, const char *line, const char *ran)
{
    size_t len = strcspn(ran, "\t\r\n");
    while (len > 0 && ran[len - 1] == ' ') {
        len--;
    }
    const char *text = out_safe(call, inspect_printf(call, "%.*s", (int)len, ran));
    return strncmp(line + strspn(line, " "), text, strlen(text)) == 0;
}

/* gdb's habit: a file that is newer than the program shows lines that did not run. ran: the marked
 * line as it ran, "" when that is not known. */
static void warn_of_changes(struct command_call *call, const struct srcfile_part *part,
                            uint32_t mark, const char *ran)
{
    ran += strspn(ran, " \t");
    bool has_line = mark >= part->first && mark - part->first < part->count;
    bool known = ran[0] != '\0' && has_line;
    bool changed = known ? !is_what_ran(call, part->line[mark - part->first], ran) : part->newer;

    if (!changed) {
        return;
    }
    if (out_is_json(call->out)) {
        cJSON_AddBoolToObject(out_record(call->out, "source"), "changed", true);
    } else if (known) {
        out_printf(call->out, "warning: %s was changed, line %u was when it ran: %s\n",
                   out_safe(call, part->path), mark, out_safe(call, ran));
    } else {
        out_printf(call->out,
                   "warning: %s is newer than this run: its lines may not be those that ran\n",
                   out_safe(call, part->path));
    }
}

/* Lines first ... of a file. */
static int list_lines(struct command_call *call, const char *file, uint32_t first, uint32_t count,
                      uint32_t mark, const char *ran, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    struct srcfile_part part;
    const char *kept = gd_arena_strdup(call->arena, file); /* state->list_file may be it */
    if (!state || !kept) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    int rc = srcfile_read(call, kept, first, count, &part, err);
    if (rc == GD_OK && part.count == 0) {
        rc = gd_fail(err, GD_ENODATA, "%.300s has no line %u", out_safe(call, kept), part.first);
    }
    bool goes_on =
        state->list_file && strcmp(state->list_file, kept) == 0 && mark == state->list_mark;
    if (rc == GD_OK && !goes_on) {
        warn_of_changes(call, &part, mark, ran);
    }
    if (rc == GD_OK) {
        rc = remember_place(call, state, kept, &part, mark, err);
    }
    if (rc == GD_OK) {
        show_lines(call, kept, &part, mark);
    }
    return rc;
}

static int list_around(struct command_call *call, const char *file, uint32_t line, const char *ran,
                       struct gd_err *err)
{
    uint32_t count = lines_wanted(call);
    uint32_t before = count / 2;
    uint32_t first = line > before ? line - before : 1;
    return list_lines(call, file, first, count, line, ran, err);
}

/* Around a frame of a node. When the file cannot be read, the line that came with the stack is
 * shown before the error says why there is no more. */
static int list_node(struct command_call *call, gd_node_id node, uint32_t number,
                     struct gd_err *err)
{
    struct stack_places places;
    int rc = stack_places(call, node, &places, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *name = out_safe(call, gd_graph_name(call->session->graph, node));
    if (number >= places.count) {
        return stack_missing(call, node, err);
    }
    const struct gd_frame *frame = &places.frame[places.place[number]];
    out_printf(call->out, "%s:%u, %s\n", out_safe(call, frame->file), frame->line, name);
    rc = list_around(call, frame->file, frame->line, frame->code, err);
    if (rc != GD_OK && frame->code[0]) {
        out_printf(call->out, "=> %5u  %s\n", frame->line, out_safe(call, frame->code));
    }
    return rc;
}

/* The lines after those shown last, or the selected frame when something else was selected since.
 */
static int list_on(struct command_call *call, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    gd_node_id node;
    if (state && state->list_file && !selection_changed(call, state)) {
        return list_lines(call, state->list_file, state->list_next, lines_wanted(call),
                          state->list_mark, "", err);
    }
    int rc = inspect_node(call, NULL, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        rc = list_node(call, node, inspect_frame(call, node), err);
    }
    return rc;
}

static int list_back(struct command_call *call, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (!state || !state->list_file) {
        return list_on(call, err);
    }
    if (state->list_first <= 1) {
        return gd_fail(err, GD_ENODATA, "the first line of %.300s has been shown",
                       out_safe(call, state->list_file));
    }
    uint32_t count = lines_wanted(call);
    uint32_t end = state->list_first;
    uint32_t first = end > count ? end - count : 1;
    return list_lines(call, state->list_file, first, end - first, state->list_mark, "", err);
}

/* "12" or "12,30": lines of the file shown last. False when the text is something else. */
static bool parse_range(const char *text, uint32_t *first, uint32_t *last)
{
    char *end = NULL;
    unsigned long a = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || a > INT32_MAX) {
        return false;
    }
    *first = (uint32_t)a;
    *last = 0;
    if (*end == ',') {
        const char *p = end + 1 + strspn(end + 1, " ");
        unsigned long b = strtoul(p, &end, 10);
        if (p[0] < '0' || p[0] > '9' || b > INT32_MAX) {
            return false;
        }
        *last = (uint32_t)b;
    }
    return *end == '\0';
}

static int list_range(struct command_call *call, uint32_t first, uint32_t last, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (!state || !state->list_file) {
        return gd_fail(err, GD_ESTATE, "no file has been listed yet: write FILE:LINE");
    }
    if (last == 0) {
        return list_around(call, state->list_file, first, "", err);
    }
    if (last < first || first == 0) {
        return gd_fail(err, GD_EINVAL, "lines %u,%u are no range", first, last);
    }
    return list_lines(call, state->list_file, first, last - first + 1, state->list_mark, "", err);
}

/* path ends in file, at a component's start. */
static bool path_matches(const char *path, const char *file)
{
    size_t path_len = strlen(path);
    size_t file_len = strlen(file);
    if (file_len > path_len || strcmp(path + path_len - file_len, file) != 0) {
        return false;
    }
    return file_len == path_len || file[0] == '/' || path[path_len - file_len - 1] == '/';
}

/* "model.c" as the stacks spell it; as it stands when no stack has such a file. */
static const char *known_file(struct command_call *call, const char *file)
{
    struct node_list list = {0};
    const char *found = NULL;

    if (!call->session) {
        return file;
    }
    gd_graph_search_source(call->session->graph, file, 0, node_list_add, &list);
    for (size_t i = 0; i < list.count && !found; i++) {
        uint32_t frames = 0;
        const struct gd_frame *frame = gd_graph_stack(call->session->graph, list.node[i], &frames);
        for (uint32_t f = 0; f < frames && !found; f++) {
            found = path_matches(frame[f].file, file) ? frame[f].file : NULL;
        }
    }
    node_list_deinit(&list);
    return found ? found : file;
}

int inspect_list(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 0) {
        return list_on(call, err);
    }
    const char *text = inspect_join(call, 0, call->argc);
    uint32_t first = 0;
    uint32_t last = 0;
    if (strcmp(text, "-") == 0) {
        return list_back(call, err);
    }
    if (parse_range(text, &first, &last)) {
        return list_range(call, first, last, err);
    }
    gd_node_id node;
    int rc = arg_node(call, text, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        return list_node(call, node, inspect_frame(call, node), err);
    }
    const char *file;
    if (rc == GD_ENOTFOUND && srcfile_parse_place(call, text, &file, &first)) {
        return list_around(call, known_file(call, file), first, "", err);
    }
    return rc;
}

/* ---- annotate ------------------------------------------------------------------------------ */

struct line_counts {
    struct line_count {
        uint32_t nodes;
        const char *code; /* the text of the line, where the stacks have it; else "" */
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
            if (frame[f].line > 0 && path_matches(frame[f].file, file) &&
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

static void show_annotated_line(struct command_call *call, cJSON *lines, uint32_t number,
                                uint32_t nodes, const char *text)
{
    if (lines) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "line", number);
        cJSON_AddNumberToObject(item, "nodes", nodes);
        inspect_add_text(call, item, "text", text);
        cJSON_AddItemToArray(lines, item);
    } else if (nodes > 0) {
        out_printf(call->out, "%5u |%5u  %s\n", nodes, number, text);
    } else {
        out_printf(call->out, "      |%5u  %s\n", number, text);
    }
}

/* part NULL: the file is not here, and the lines are those that the stacks have. */
static void show_annotated(struct command_call *call, const struct srcfile_part *part,
                           const struct line_counts *counts, uint32_t first)
{
    cJSON *lines = NULL;
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "annotated");
        inspect_add_text(call, record, "file", counts->path);
        cJSON_AddBoolToObject(record, "whole", part != NULL);
        lines = cJSON_AddArrayToObject(record, "lines");
    } else if (!part) {
        out_printf(call->out, "%s cannot be read here; these lines come with the stacks:\n",
                   out_safe(call, counts->path));
    }
    for (uint32_t i = 0; part && i < part->count; i++) {
        uint32_t number = part->first + i;
        uint32_t nodes = number < counts->limit ? counts->at[number].nodes : 0;
        show_annotated_line(call, lines, number, nodes, part->line[i]);
    }
    for (uint32_t i = first; !part && i < counts->limit; i++) {
        if (counts->at[i].nodes > 0) {
            show_annotated_line(call, lines, i, counts->at[i].nodes,
                                out_safe(call, counts->at[i].code));
        }
    }
}

/* Lines around those that made nodes, or from `first` on. */
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
    uint32_t wanted = end + 2 > from ? end + 2 - from : lines_wanted(call);
    wanted = wanted > ANNOTATED_LINES ? ANNOTATED_LINES : wanted;
    int rc = srcfile_read(call, counts->path, from, wanted, &part, err);
    if (rc == GD_OK || counts->has_code) {
        show_annotated(call, rc == GD_OK ? &part : NULL, counts, from);
        rc = GD_OK;
    }
    return rc;
}

int inspect_annotate(struct command_call *call, struct gd_err *err)
{
    const char *file = NULL;
    uint32_t first = 0;
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "annotate wants one file");
    }
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
                                   "no node was made in %.300s; `sources` lists the files",
                                   out_safe(call, file));
    free(counts.at);
    return rc;
}

/* ---- info source --------------------------------------------------------------------------- */

struct file_count {
    const char *file; /* the graph's */
    uint32_t nodes;
    uint32_t low, high; /* lines */
};
struct file_table { /* open addressing, by the file's text */
    struct file_count *slot;
    uint32_t used, room; /* room is a power of two */
};

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

static struct file_count *find_slot(struct file_count *slot, uint32_t room, const char *file)
{
    uint32_t at = hash_text(file) & (room - 1);
    while (slot[at].file && strcmp(slot[at].file, file) != 0) {
        at = (at + 1) & (room - 1);
    }
    return &slot[at];
}

static struct file_count *file_entry(struct file_table *table, const char *file)
{
    if (2 * (table->used + 1) > table->room) {
        uint32_t room = table->room ? 2 * table->room : 64;
        struct file_count *grown = calloc(room, sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        for (uint32_t i = 0; i < table->room; i++) {
            if (table->slot[i].file) {
                *find_slot(grown, room, table->slot[i].file) = table->slot[i];
            }
        }
        free(table->slot);
        table->slot = grown;
        table->room = room;
    }
    struct file_count *entry = find_slot(table->slot, table->room, file);
    if (!entry->file) {
        entry->file = file;
        entry->low = UINT32_MAX;
        table->used++;
    }
    return entry;
}

/* Counts the node once for each file of its stack. */
static bool count_files(struct file_table *table, const struct gd_frame *frame, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (frame[i].is_title || !frame[i].file[0]) {
            continue;
        }
        struct file_count *entry = file_entry(table, frame[i].file);
        if (!entry) {
            return false;
        }
        entry->low = frame[i].line < entry->low ? frame[i].line : entry->low;
        entry->high = frame[i].line > entry->high ? frame[i].line : entry->high;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) {
            seen = strcmp(frame[j].file, frame[i].file) == 0;
        }
        entry->nodes += seen ? 0 : 1;
    }
    return true;
}

static int by_nodes(const void *a, const void *b)
{
    const struct file_count *x = a;
    const struct file_count *y = b;
    if (!x->file || !y->file) {
        return (x->file ? 0 : 1) - (y->file ? 0 : 1);
    }
    return x->nodes != y->nodes ? (x->nodes < y->nodes ? 1 : -1) : strcmp(x->file, y->file);
}

static void show_files(struct command_call *call, const struct file_table *table, const char *text)
{
    static const struct out_column columns[] = {{"nodes", "Nodes", true},
                                                {"first", "First", true},
                                                {"last", "Last", true},
                                                {"file", "File", false}};
    struct out_table *rows = out_table_begin(call->out, "sources", columns, 4);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < table->used; i++) {
        const struct file_count *entry = &table->slot[i];
        if (!strstr(entry->file, text)) {
            continue;
        }
        const char *cells[] = {
            inspect_printf(call, "%u", entry->nodes), inspect_printf(call, "%u", entry->low),
            inspect_printf(call, "%u", entry->high), inspect_name(call, entry->file)};
        out_table_row(rows, cells);
        shown++;
    }
    out_table_end(rows);
    if (shown == 0) {
        out_printf(call->out,
                   table->used ? "No such source file.\n" : "The trainer sent no stacks.\n");
    }
}

int inspect_info_source(struct command_call *call, struct gd_err *err)
{
    struct file_table table = {0};
    struct gd_graph *graph = call->session->graph;
    uint32_t limit = gd_graph_node_limit(graph);
    int rc = GD_OK;
    for (gd_node_id node = 0; node < limit && rc == GD_OK; node++) {
        uint32_t count = 0;
        const struct gd_frame *frame = gd_graph_stack(graph, node, &count);
        if (count > 0 && !count_files(&table, frame, count)) {
            rc = gd_fail(err, GD_ENOMEM, "out of memory");
        }
    }
    if (rc == GD_OK) {
        if (table.used > 0) {
            qsort(table.slot, table.room, sizeof(*table.slot), by_nodes);
        }
        show_files(call, &table, call->argc ? call->argv[0] : "");
    }
    free(table.slot);
    return rc;
}

/* ---- info line ----------------------------------------------------------------------------- */

int inspect_info_line(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    const char *file = NULL;
    uint32_t line = 0;
    if (call->argc != 1 || !srcfile_parse_place(call, call->argv[0], &file, &line)) {
        return gd_fail(err, GD_EUSAGE, "info line wants FILE:LINE");
    }
    struct node_list list = {0};
    gd_graph_search_source(call->session->graph, file, line, node_list_add, &list);
    if (list.failed) {
        node_list_deinit(&list);
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    nodes_show(call, &list, all,
               inspect_printf(call, "info line %s -a", out_safe(call, call->argv[0])));
    node_list_deinit(&list);
    return GD_OK;
}
