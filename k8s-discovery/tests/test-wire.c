/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf for tests. Contract in test-wire.h. */
#include "k8s-discovery/tests/test-wire.h"

#include "testing/test.h"
#include "k8s-discovery/objects/proto.h"

static void varint(struct buf *b, uint64_t value)
{
	char bytes[10];

	buf_append(b, bytes, (size_t)(proto_put(bytes, value) - bytes));
}

void wire_number(struct buf *b, uint32_t number, uint64_t value)
{
	varint(b, number << 3 | PROTO_VARINT);
	varint(b, value);
}

static void bytes(struct buf *b, uint32_t number, struct str s)
{
	varint(b, number << 3 | PROTO_BYTES);
	varint(b, s.n);
	buf_str_append(b, s);
}

void wire_text(struct buf *b, uint32_t number, const char *text)
{
	bytes(b, number, str_of(text));
}

void wire_part(struct buf *b, uint32_t number, struct buf *part)
{
	bytes(b, number, buf_str(part));
	buf_free(part);
}

void wire_entry(struct buf *b, uint32_t number, const char *key, const char *value)
{
	struct buf entry = BUF_NULL;

	wire_text(&entry, 1, key);
	wire_text(&entry, 2, value);
	wire_part(b, number, &entry);
}

struct buf wire_envelope(const char *kind, struct buf *message)
{
	struct buf b = BUF_NULL, meta = BUF_NULL;

	buf_append(&b, "k8s", 4);
	wire_text(&meta, 1, "v1");
	wire_text(&meta, 2, kind);
	wire_part(&b, 1, &meta);
	wire_part(&b, 2, message);
	wire_text(&b, 3, "");
	wire_text(&b, 4, "");
	return b;
}

void wire_event(struct buf *b, const char *type, const char *kind, struct buf *object)
{
	struct buf event = BUF_NULL, raw = BUF_NULL, envelope = wire_envelope(kind, object);

	wire_part(&raw, 1, &envelope);
	wire_text(&event, 1, type);
	wire_part(&event, 2, &raw);
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_putc(b, (char)(event.n >> shift));
	buf_append(b, event.p, event.n);
	buf_free(&event);
}

static void container(struct buf *spec, uint32_t number, const char *name, int ports)
{
	struct buf c = BUF_NULL;

	wire_text(&c, 1, name);
	wire_text(&c, 2, "registry/app:1");
	wire_text(&c, 3, "--unwanted");
	for (int i = 0; i < ports; i++) {
		struct buf port = BUF_NULL;

		if (i == 0)
			wire_text(&port, 1, "http");
		wire_number(&port, 2, 0);
		wire_number(&port, 3, (uint64_t)(8080 + i));
		wire_text(&port, 4, i ? "UDP" : "TCP");
		wire_part(&c, 6, &port);
	}
	wire_part(spec, number, &c);
}

static void status_of(struct buf *status, uint32_t number, const char *name, const char *id)
{
	struct buf s = BUF_NULL;

	wire_text(&s, 1, name);
	wire_number(&s, 4, 1);
	wire_text(&s, 8, id);
	wire_part(status, number, &s);
}

static struct buf metadata_of(const char *name, const char *version)
{
	struct buf meta = BUF_NULL, owner = BUF_NULL, other = BUF_NULL, managed = BUF_NULL;

	wire_text(&meta, 1, name);
	wire_text(&meta, 3, "shop");
	wire_text(&meta, 5, "uid-1");
	wire_text(&meta, 6, version);
	wire_number(&meta, 7, 3);
	wire_entry(&meta, 11, "app", "web");
	wire_entry(&meta, 11, "a/b", "1");
	wire_entry(&meta, 11, "a_b", "2");
	wire_entry(&meta, 12, "note", "");
	wire_text(&other, 1, "Node");
	wire_text(&other, 3, "n");
	wire_part(&meta, 13, &other);
	wire_text(&owner, 1, "ReplicaSet");
	wire_text(&owner, 3, "web");
	wire_number(&owner, 6, 1);
	wire_part(&meta, 13, &owner);
	wire_text(&managed, 1, "kubelet");
	for (int i = 0; i < 100; i++)
		wire_text(&managed, 7, "{\"f:metadata\":{}}");
	wire_part(&meta, 17, &managed);
	return meta;
}

struct buf wire_pod(const char *name, const char *version)
{
	struct buf pod = BUF_NULL, spec = BUF_NULL, status = BUF_NULL, condition = BUF_NULL;
	struct buf meta = metadata_of(name, version);

	wire_part(&pod, 1, &meta);
	wire_text(&spec, 1, "a volume");
	container(&spec, 2, "app", 2);
	container(&spec, 2, "side", 0);
	wire_text(&spec, 10, "n1");
	container(&spec, 20, "setup", 0);
	wire_number(&spec, 4, 30);
	varint(&spec, 60 << 3 | PROTO_I64);
	buf_append(&spec, "12345678", 8);
	varint(&spec, 61 << 3 | PROTO_I32);
	buf_append(&spec, "1234", 4);
	wire_part(&pod, 2, &spec);
	wire_text(&status, 1, "Running");
	wire_text(&condition, 1, "PodScheduled");
	wire_text(&condition, 2, "True");
	wire_part(&status, 2, &condition);
	wire_text(&condition, 1, "Ready");
	wire_text(&condition, 2, "True");
	wire_part(&status, 2, &condition);
	wire_text(&status, 5, "10.1.0.1");
	wire_text(&status, 6, "10.0.0.7");
	status_of(&status, 8, "app", "containerd://abc");
	status_of(&status, 10, "setup", "containerd://def");
	wire_part(&pod, 3, &status);
	expect(!pod.failed);
	return pod;
}

struct buf wire_bookmark(const char *version, bool end)
{
	struct buf pod = BUF_NULL, meta = BUF_NULL;

	wire_text(&meta, 6, version);
	if (end)
		wire_entry(&meta, 12, "k8s.io/initial-events-end", "true");
	wire_part(&pod, 1, &meta);
	return pod;
}

struct buf wire_status(int code, const char *message)
{
	struct buf status = BUF_NULL;

	wire_text(&status, 2, "Failure");
	wire_text(&status, 3, message);
	wire_number(&status, 6, (uint64_t)code);
	return status;
}

struct buf wire_pods(size_t n, const char *version, const char *next)
{
	struct buf list = BUF_NULL, meta = BUF_NULL;

	wire_text(&meta, 2, version);
	wire_text(&meta, 3, next);
	wire_part(&list, 1, &meta);
	for (size_t i = 0; i < n; i++) {
		char name[24];
		struct buf pod;

		snprintf(name, sizeof(name), "p%zu", i);
		pod = wire_pod(name, version);
		wire_part(&list, 2, &pod);
	}
	return wire_envelope("PodList", &list);
}
