// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Event files as TensorBoard and MindInsight read them: records framed as in TFRecord, each an
 * Event message. A scalar is written as simple_value, TensorBoard's field, and as scalar_value,
 * MindInsight's: each of the two ignores the other one's. Histograms are TensorBoard's alone:
 * MindInsight has their field's number for something else.
 */
#ifndef GD_REPL_EVENT_FILE_H
#define GD_REPL_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The checksum of a record: CRC-32C, rotated and shifted as TFRecord has it. */
uint32_t event_file_checksum(const void *bytes, size_t len);

/* The first record, with the version. */
void event_file_begin(FILE *file, double wall_time);
/* The value as a float. Names longer than 1000 bytes are cut. Errors stay in the file. */
void event_file_scalar(FILE *file, double wall_time, int64_t step, const char *name, double value);
/* A histogram for TensorBoard: the finite elements. Its sums are of the middles of the bins. */
struct chart_bins;
void event_file_histogram(FILE *file, double wall_time, int64_t step, const char *name,
                          const struct chart_bins *bins);

#endif
