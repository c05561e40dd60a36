// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The inside of a history: its file as bytes (history_file.c creates it, history_open.c reads it)
 * and its bookkeeping in memory (history.c). docs/history.md describes the bytes. Records are in
 * one ring for all tensors, in order of arrival, so every tensor has as many steps as the others.
 * Record number `sequence` (from 1) is at sequence % ring.
 */
#ifndef GD_ENGINE_HISTORY_IMPL_H
#define GD_ENGINE_HISTORY_IMPL_H

#include "base/arena.h"
#include "base/buf.h"
#include "engine/hash_index.h"
#include "engine/history/history.h"

#define HISTORY_MAGIC       "GRADBHR\n"
#define HISTORY_VERSION     1
#define HISTORY_HEADER      4096u /* bytes; tables and ring follow */
#define HISTORY_HEAD_FIXED  2048u /* of them never change */
#define HISTORY_STATE_BYTES 64u   /* two of these follow */
#define HISTORY_ENTRY       64u
#define HISTORY_RECORD      232u
#define HISTORY_TEXT        256u /* bytes of names planned for a tensor */
#define HISTORY_MIN_STEPS   16u
#define HISTORY_MIN_BYTES   (UINT64_C(64) << 10)
#define HISTORY_MAX_BYTES   (UINT64_C(4) << 30)
#define HISTORY_MAX_SLOT    4095u
#define HISTORY_NONE        UINT32_MAX

enum history_kind { HISTORY_OF_NODE, HISTORY_OF_SCALAR, HISTORY_OF_BINS };

struct history_layout {
    uint64_t bytes; /* of the file */
    uint64_t table, text, ring;
    uint64_t text_bytes;
    uint32_t capacity; /* entries of the table */
    uint32_t records;  /* in the ring */
};

struct history_tensor {
    struct gd_history_tensor about; /* strings in the arena */
    uint32_t last;                  /* place of its newest record; HISTORY_NONE */
    uint64_t last_sequence;
    int64_t last_step; /* of that record, and its generation; where it is written */
    uint32_t last_generation;
};

struct gd_history {
    char *path;
    struct history_layout layout;
    struct gd_peer peer;
    double started;
    /* a file that is written */
    int fd;             /* -1: read from a file, or out of use */
    unsigned char *map; /* all of it; NULL when it was read */
    uint64_t text_used;
    uint64_t state_serial;
    /* a file that was read */
    unsigned char *copy; /* its good records, oldest first */
    uint64_t damaged;    /* bad records and entries */
    /* both */
    struct gd_arena arena;
    struct history_tensor *tensors;
    uint32_t tensor_count;
    size_t tensor_room;
    struct gd_hash_index index; /* of tensors by name and slot */
    uint32_t places;            /* of records: the ring, or the copy */
    uint64_t *sequence_of;      /* by place; 0: none there */
    uint32_t *tensor_of;        /* by place */
    uint32_t *before;           /* by place: the place of the tensor's record before it */
    uint64_t next_sequence;
    uint32_t generation;
    int64_t last_step; /* of this generation; -1 none */
    uint64_t left_out;
    struct gd_hash_index refused; /* the tensors that did not fit */
};

struct history_record {        /* as it lies in the file */
    uint64_t sequence, number; /* number: how many of this tensor, with this one */
    uint32_t tensor, generation;
    union {
        struct gd_history_record value;
        struct gd_history_bins bins; /* is_bins */
    };
    bool is_bins;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

uint64_t history_checksum(const unsigned char *p, size_t len); /* len: a multiple of 8 */
void history_put_record(unsigned char *p, const struct history_record *record);
/* False: torn, damaged, or empty. */
bool history_get_record(const unsigned char *p, struct history_record *ret);
void history_put_head(unsigned char *p, const struct gd_history *history);
/* GD_EPROTO: says what is wrong. Sets layout, peer and started. */
int history_get_head(const unsigned char *p, struct gd_history *history, uint64_t file_bytes,
                     struct gd_err *err);
void history_put_state(unsigned char *head, uint64_t serial, uint64_t left_out);
void history_get_state(const unsigned char *head, uint64_t *left_out);
/* The entry and its text; GD_ELIMIT when more than `room` bytes of text would be needed. */
int history_put_entry(unsigned char *entry, unsigned char *text, uint64_t text_at, uint64_t room,
                      const struct gd_history_tensor *tensor, uint64_t *used);
bool history_get_entry(const unsigned char *entry, const unsigned char *text, uint64_t text_bytes,
                       struct gd_arena *arena, struct gd_history_tensor *ret);

/* ---- books ----------------------------------------------------------------------------------- */

struct gd_history *history_new(void);
int history_reserve(struct gd_history *history, uint32_t places, struct gd_err *err);
uint32_t history_find(const struct gd_history *history, const char *name, uint32_t slot,
                      enum history_kind kind);
/* Adds a new tensor; its strings must live in the arena. */
int history_add_tensor(struct gd_history *history, const struct gd_history_tensor *about,
                       uint32_t *ret, struct gd_err *err);
/* The tensor's number; a new one is written to the table. GD_ELIMIT: no room. */
int history_enter(struct gd_history *history, const struct gd_history_tensor *tensor, uint32_t *ret,
                  struct gd_err *err);
/* step >= 0. late: a record of an earlier step does not restart the history. */
int history_record(struct gd_history *history, uint32_t index,
                   const struct gd_history_record *record, bool late, struct gd_err *err);
int history_record_bins(struct gd_history *history, uint32_t index,
                        const struct gd_history_bins *bins, struct gd_err *err);
enum history_kind history_kind_of(const struct gd_history_tensor *tensor);
/* A record is at its place now: links it to the tensor's previous record. */
void history_link(struct gd_history *history, uint32_t place, uint64_t sequence, uint32_t tensor);

#endif
