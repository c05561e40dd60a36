// SPDX-License-Identifier: GPL-3.0-or-later
/* From evidence to findings: runs the rules, words what they find, ranks it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/diagnose/rule.h"
#include "repl/out/out_impl.h"

#define MOST_FINDINGS 40
#define MOST_OF_RULE  3 /* findings of one rule; further places are added to the last of them */
#define MOST_PLACES   8
#define MOST_SENTENCE 4096

static const char *const verdicts[] = {"", "note", "suspect", "fault"};

/* ---- reading a piece ------------------------------------------------------------------------- */

double diagnose_number(const cJSON *piece, const char *key, double missing)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(piece, key);

    if (cJSON_IsNumber(item)) {
        return item->valuedouble;
    }
    if (cJSON_IsRaw(item)) { /* what diagnose_set has written */
        return strtod(item->valuestring, NULL);
    }
    if (cJSON_IsString(item)) { /* what JSON cannot write as a number */
        const char *text = item->valuestring;
        return strcmp(text, "nan") == 0    ? NAN
               : strcmp(text, "inf") == 0  ? INFINITY
               : strcmp(text, "-inf") == 0 ? -INFINITY
                                           : missing;
    }
    return missing;
}

double diagnose_count(const cJSON *piece, const char *key)
{
    return diagnose_number(piece, key, 0);
}

bool diagnose_has(const cJSON *piece, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(piece, key);

    return item && !cJSON_IsNull(item);
}

bool diagnose_is(const cJSON *piece, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(piece, key));
}

const char *diagnose_text(const cJSON *piece, const char *key)
{
    return out_text_of(piece, key);
}

const cJSON *diagnose_find(const struct diagnose_evidence *all, const char *kind)
{
    const cJSON *piece;

    cJSON_ArrayForEach(piece, all->pieces)
    {
        if (strcmp(out_text_of(piece, "kind"), kind) == 0) {
            return piece;
        }
    }
    return NULL;
}

void diagnose_set(cJSON *piece, const char *key, double number)
{
    cJSON_DeleteItemFromObjectCaseSensitive(piece, key);
    out_set(piece, OUT_REAL(key, number));
}

bool diagnose_holds_always(const cJSON *piece)
{
    double steps = diagnose_number(piece, "steps", 0);

    return steps > 0 && diagnose_number(piece, "held", 0) >= steps;
}

double diagnose_loss_left(const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double early = course ? diagnose_number(course, "early", NAN) : NAN;
    double late = course ? diagnose_number(course, "late", NAN) : NAN;

    return isfinite(early) && isfinite(late) && early > 0 ? late / early : 0;
}

enum diagnose_verdict diagnose_is_fault(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)piece;
    (void)all;
    return DIAGNOSE_FAULT;
}

enum diagnose_verdict diagnose_is_suspect(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)piece;
    (void)all;
    return DIAGNOSE_SUSPECT;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void put_words(cJSON *finding, const char *key, const char *template, const cJSON *piece)
{
    struct gd_buf text = GD_BUF_INIT(MOST_SENTENCE);

    if (template) {
        out_render(NULL, piece, template, OUT_FIELDS(), &text);
        out_set(finding, OUT_TEXT(key, gd_buf_text(&text)));
    }
    gd_buf_deinit(&text);
}

/* "a; b" becomes a list of texts. */
static void put_list(cJSON *finding, const char *key, const char *template, const cJSON *piece)
{
    struct gd_buf text = GD_BUF_INIT(MOST_SENTENCE);
    cJSON *list = out_list(finding, key);
    char *rest = NULL;

    if (template) {
        out_render(NULL, piece, template, OUT_FIELDS(), &text);
    }
    char *copy = strdup(gd_buf_text(&text));
    for (char *one = copy; one && *one != '\0'; one = rest) {
        rest = strstr(one, "; ");
        if (rest) {
            *rest = '\0';
            rest += 2;
        }
        out_push_text(list, one);
    }
    free(copy);
    gd_buf_deinit(&text);
}

static void add_place(cJSON *finding, const cJSON *piece)
{
    const char *file = out_text_of(piece, "file"), *node = out_text_of(piece, "node");
    cJSON *places = cJSON_GetObjectItem(finding, "where");

    if ((file[0] == '\0' && node[0] == '\0') || cJSON_GetArraySize(places) >= MOST_PLACES) {
        return;
    }
    const cJSON *one;
    cJSON_ArrayForEach(one, places)
    {
        if (strcmp(out_text_of(one, "file"), file) == 0 &&
            strcmp(out_text_of(one, "node"), node) == 0 &&
            out_number_of(one, "line") == out_number_of(piece, "line")) {
            return;
        }
    }
    cJSON *place = out_push(places);
    out_set(place, OUT_SOME("file", file),
            OUT_IF(file[0] != '\0', OUT_INT("line", out_number_of(piece, "line"))),
            OUT_SOME("node", node));
}

static cJSON *make_finding(const struct diagnose_rule *rule, enum diagnose_verdict verdict,
                           const cJSON *piece)
{
    cJSON *finding = cJSON_CreateObject();

    if (!finding) {
        return NULL;
    }
    const char *named = out_text_of(piece, "rule"); /* of `why` */
    out_set(finding, OUT_TEXT("verdict", verdicts[verdict]),
            OUT_TEXT("rule", named[0] != '\0' ? named : rule->name));
    put_words(finding, "cause", rule->cause, piece);
    out_list(finding, "where");
    add_place(finding, piece);
    const cJSON *also;
    cJSON_ArrayForEach(also, cJSON_GetObjectItem(piece, "also"))
    {
        add_place(finding, also);
    }
    put_list(finding, "evidence", rule->numbers, piece);
    put_words(finding, "advice", rule->advice, piece);
    put_words(finding, "look", rule->look, piece);
    double rank = out_number_of(piece, "rank");
    bool own = rank > 0 && !diagnose_has(piece, "world"); /* not about the whole job */
    out_set(finding, OUT_IF(own, OUT_INT("process_rank", rank)));
    out_set(finding, OUT_TEXT("source", rule->source));
    return finding;
}

static int level_of(const char *verdict)
{
    int level = 3;

    while (level > 0 && strcmp(verdicts[level], verdict) != 0) {
        level--;
    }
    return level;
}

bool diagnose_is_at_least(const char *verdict, const char *least)
{
    return level_of(verdict) >= level_of(least);
}

/* Whether another rank has that finding: the same rule at the same place. */
static bool is_known_of_rank(const cJSON *one, const cJSON *finding, const cJSON *piece)
{
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "where"), 0);
    const cJSON *second = cJSON_GetArrayItem(cJSON_GetObjectItem(finding, "where"), 0);

    return out_number_of(piece, "rank") != out_number_of(one, "process_rank") &&
           strcmp(out_text_of(one, "rule"), out_text_of(finding, "rule")) == 0 &&
           strcmp(out_text_of(first, "file"), out_text_of(second, "file")) == 0 &&
           strcmp(out_text_of(first, "node"), out_text_of(second, "node")) == 0 &&
           out_number_of(first, "line") == out_number_of(second, "line");
}

/* A rule that finds the same in many places has few findings with many places. What `why` finds
 * too is known already. */
static void add_finding(cJSON *findings, cJSON *finding, const cJSON *piece)
{
    cJSON *one, *last = NULL;
    bool asked = strncmp(out_text_of(piece, "kind"), "why-", 4) == 0;
    int count = 0;

    cJSON_ArrayForEach(one, findings)
    {
        if (finding && is_known_of_rank(one, finding, piece)) {
            cJSON_Delete(finding);
            return;
        }
        bool same = strcmp(out_text_of(one, "rule"), out_text_of(finding, "rule")) == 0;
        count += same;
        last = same ? one : last;
    }
    if (finding && count >= MOST_OF_RULE) {
        add_place(last, piece);
    }
    if (!finding || count >= MOST_OF_RULE || (asked && count > 0) ||
        cJSON_GetArraySize(findings) >= MOST_FINDINGS) {
        cJSON_Delete(finding);
        return;
    }
    cJSON_AddItemToArray(findings, finding);
}

/* Faults, then suspects, then notes; each in the order of the tables. */
static cJSON *rank_findings(cJSON *findings)
{
    cJSON *ret = cJSON_CreateArray();
    int rank = 0;

    for (int level = DIAGNOSE_FAULT; ret && level > DIAGNOSE_SILENT; level--) {
        for (int i = 0; i < cJSON_GetArraySize(findings);) {
            cJSON *one = cJSON_GetArrayItem(findings, i);
            if (level_of(out_text_of(one, "verdict")) != level) {
                i++;
                continue;
            }
            one = cJSON_DetachItemFromArray(findings, i);
            cJSON *numbered = cJSON_CreateObject();
            out_set(numbered, OUT_INT("rank", ++rank));
            out_move(numbered, one);
            cJSON_Delete(one);
            cJSON_AddItemToArray(ret, numbered);
        }
    }
    cJSON_Delete(findings);
    return ret;
}

static void apply_rule(const struct diagnose_rule *rule, const struct diagnose_evidence *all,
                       cJSON *pieces, cJSON *findings)
{
    cJSON *piece;

    cJSON_ArrayForEach(piece, pieces)
    {
        if (strcmp(out_text_of(piece, "kind"), rule->evidence) == 0) {
            enum diagnose_verdict verdict = rule->judge(piece, all);
            if (verdict != DIAGNOSE_SILENT) {
                add_finding(findings, make_finding(rule, verdict, piece), piece);
            }
        }
    }
}

cJSON *diagnose_judge(cJSON *pieces)
{
    struct diagnose_evidence all = {.pieces = pieces};
    cJSON *findings = cJSON_CreateArray();

    for (size_t i = 0; findings && diagnose_tables[i]; i++) {
        for (const struct diagnose_rule *rule = diagnose_tables[i]; rule->name; rule++) {
            apply_rule(rule, &all, pieces, findings);
        }
    }
    return findings ? rank_findings(findings) : NULL;
}
