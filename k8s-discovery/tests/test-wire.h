/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf as a Kubernetes API server writes it, for tests: messages into a buffer, with the fields
 * that andiron keeps and some that it does not. */
#pragma once

#include "base/buf.h"

/* Fields. wire_part puts the content of another buffer, and frees that. */
void wire_number(struct buf *b, uint32_t number, uint64_t value);
void wire_text(struct buf *b, uint32_t number, const char *text);
void wire_part(struct buf *b, uint32_t number, struct buf *part);
void wire_entry(struct buf *b, uint32_t number, const char *key, const char *value);

/* "k8s\0" and Unknown around a message, which is freed. */
struct buf wire_envelope(const char *kind, struct buf *message);
/* A frame of a watch: length, type and an object in its envelope. */
void wire_event(struct buf *b, const char *type, const char *kind, struct buf *object);

/* A pod: two containers, three ports, labels, an owner, statuses, and much that nobody wants
 * (managedFields, volumes, unknown fields of all types). */
struct buf wire_pod(const char *name, const char *version);
/* A bookmark's object; `end` for the one that ends the initial events. */
struct buf wire_bookmark(const char *version, bool end);
struct buf wire_status(int code, const char *message);
/* A list of pods "p0", "p1", …, in its envelope. */
struct buf wire_pods(size_t n, const char *version, const char *next);
