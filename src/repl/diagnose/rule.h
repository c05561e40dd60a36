// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The rules of `diagnose`: what is wrong with a training run, from evidence.
 *
 * Evidence is gathered in the training process by watchers (python/gradb/torch/observe/), which
 * measure and do not judge: each piece is a JSON object {"kind", numbers, texts} with the "file",
 * "line" and "node" that it is about; "also" lists further places. A rule judges pieces of one kind
 * and puts its finding into words. All thresholds are here, none in the watchers.
 *
 * To add a rule: let a watcher report the evidence, and add an entry to the table of its subject
 * (rules_SUBJECT.c). `info rules` and the command follow the entry.
 */
#ifndef GD_REPL_DIAGNOSE_RULE_H
#define GD_REPL_DIAGNOSE_RULE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum diagnose_verdict {
    DIAGNOSE_SILENT,  /* the evidence does not decide, or nothing is wrong */
    DIAGNOSE_NOTE,    /* an observation that may matter */
    DIAGNOSE_SUSPECT, /* it is probably a mistake */
    DIAGNOSE_FAULT,   /* it is a mistake whatever the intention */
};

enum diagnose_cost {
    DIAGNOSE_EACH_STEP, /* noted in each step, at the cost of a few values */
    DIAGNOSE_OPERATORS, /* the operators of the first steps, and of steps 16, 32, 64, ... */
    DIAGNOSE_EXACT,     /* each operator's outputs, until the first one that is not finite */
};

/* All evidence of one run. A judge may look at other pieces than its own. */
struct diagnose_evidence {
    const cJSON *pieces; /* a list; borrowed */
};

/* piece: the judge may add fields that its sentences name. */
typedef enum diagnose_verdict (*diagnose_judge_fn)(cJSON *piece,
                                                   const struct diagnose_evidence *all);

/* Where the evidence itself decides. */
enum diagnose_verdict diagnose_is_fault(cJSON *piece, const struct diagnose_evidence *all);
enum diagnose_verdict diagnose_is_suspect(cJSON *piece, const struct diagnose_evidence *all);

struct diagnose_rule {
    const char *name;     /* "normalised-twice" */
    const char *evidence; /* the kind of evidence that it judges */
    enum diagnose_cost cost;
    diagnose_judge_fn judge;
    /* Templates (out.h) over the piece: one sentence that names the cause, without a period; the
     * numbers it is based on, separated by "; "; what to change. */
    const char *cause, *numbers, *advice;
    const char *look;   /* commands for a closer look, separated by ", "; NULL: none */
    const char *source; /* where the mistake is described */
};

/* A table ends with an entry without a name. */
extern const struct diagnose_rule diagnose_rules_numbers[];
extern const struct diagnose_rule diagnose_rules_calls[];
extern const struct diagnose_rule diagnose_rules_updates[];
extern const struct diagnose_rule diagnose_rules_schedules[];
extern const struct diagnose_rule diagnose_rules_backward[];
extern const struct diagnose_rule diagnose_rules_loss[];
extern const struct diagnose_rule diagnose_rules_targets[];
extern const struct diagnose_rule diagnose_rules_objectives[];
extern const struct diagnose_rule diagnose_rules_data[];
extern const struct diagnose_rule diagnose_rules_axes[];
extern const struct diagnose_rule diagnose_rules_collapse[];
extern const struct diagnose_rule diagnose_rules_language[];
extern const struct diagnose_rule diagnose_rules_structure[];
extern const struct diagnose_rule diagnose_rules_ranks[];
extern const struct diagnose_rule diagnose_rules_why[];

/* All tables; NULL ends them. */
extern const struct diagnose_rule *const diagnose_tables[];

/* A number of a piece; `missing` if there is none. "nan", "inf" and "-inf" are numbers. */
double diagnose_number(const cJSON *piece, const char *key, double missing);
/* The same; 0 if there is none. */
double diagnose_count(const cJSON *piece, const char *key);
bool diagnose_has(const cJSON *piece, const char *key);
bool diagnose_is(const cJSON *piece, const char *key);          /* true */
const char *diagnose_text(const cJSON *piece, const char *key); /* "" if there is none */
/* The first piece of that kind; NULL: none. */
const cJSON *diagnose_find(const struct diagnose_evidence *all, const char *kind);
/* What a piece states held in each of its steps: as many are "held" as there are "steps". */
bool diagnose_holds_always(const cJSON *piece);
/* How much of the loss is left at the end: 1: it has not changed. 0: unknown. */
double diagnose_loss_left(const struct diagnose_evidence *all);
/* Adds or replaces a number. */
void diagnose_set(cJSON *piece, const char *key, double number);

/* The findings of a list of pieces, the most certain first: a list of objects {"rank", "verdict",
 * "rule", "cause", "where", "evidence", "advice", "look", "source"}, as docs/json.md has it. The
 * caller owns it; NULL: out of memory. */
cJSON *diagnose_judge(cJSON *pieces);
/* Whether `verdict` ("fault", "suspect", "note") is at least `least`. */
bool diagnose_is_at_least(const char *verdict, const char *least);

#endif
