/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to protobuf, by a table of each message's fields. Contract in otlp-json.h. */
#include "receive-http/json/otlp-json.h"

#include "base/cleanup.h"
#include "protobuf/wire.h"
#include "receive-http/json/json-body.h"

#include <errno.h>

enum kind {
	TEXT,
	NUMBER,
	FIXED64,
	MESSAGE,
	LIST = 1 << 2, /* of one of these */
	TEXTS = LIST | TEXT,
	NUMBERS = LIST | NUMBER,
	FIXED64S = LIST | FIXED64,
	MESSAGES = LIST | MESSAGE,
};

struct field {
	const char *name;
	uint32_t number;
	enum kind kind;
	const struct field *of; /* of a message; the last one has no name */
};

#define END                                                                                        \
	{                                                                                          \
		NULL, 0, TEXT, NULL                                                                \
	}

static const struct field any_value[] = {{"stringValue", 1, TEXT, NULL},
					 {"boolValue", 2, NUMBER, NULL},
					 {"intValue", 3, NUMBER, NULL},
					 {"stringValueStrindex", 8, NUMBER, NULL},
					 END};
static const struct field key_value[] = {{"key", 1, TEXT, NULL},
					 {"value", 2, MESSAGE, any_value},
					 {"keyStrindex", 3, NUMBER, NULL},
					 END};
static const struct field resource[] = {{"attributes", 1, MESSAGES, key_value}, END};

static const struct field value_type[] = {
	{"typeStrindex", 1, NUMBER, NULL}, {"unitStrindex", 2, NUMBER, NULL}, END};
static const struct field sample[] = {{"stackIndex", 1, NUMBER, NULL},
				      {"attributeIndices", 2, NUMBERS, NULL},
				      {"values", 4, NUMBERS, NULL},
				      {"timestampsUnixNano", 5, FIXED64S, NULL},
				      END};
static const struct field profile[] = {{"sampleType", 1, MESSAGE, value_type},
				       {"samples", 2, MESSAGES, sample},
				       {"timeUnixNano", 3, FIXED64, NULL},
				       {"durationNano", 4, NUMBER, NULL},
				       {"periodType", 5, MESSAGE, value_type},
				       {"period", 6, NUMBER, NULL},
				       END};
static const struct field scope_profiles[] = {{"profiles", 2, MESSAGES, profile}, END};
static const struct field resource_profiles[] = {
	{"resource", 1, MESSAGE, resource}, {"scopeProfiles", 2, MESSAGES, scope_profiles}, END};

static const struct field mapping[] = {
	{"memoryStart", 1, NUMBER, NULL},      {"memoryLimit", 2, NUMBER, NULL},
	{"fileOffset", 3, NUMBER, NULL},       {"filenameStrindex", 4, NUMBER, NULL},
	{"attributeIndices", 5, NUMBERS, NULL}, END};
static const struct field line[] = {{"functionIndex", 1, NUMBER, NULL},
				    {"line", 2, NUMBER, NULL},
				    {"column", 3, NUMBER, NULL},
				    END};
static const struct field location[] = {{"mappingIndex", 1, NUMBER, NULL},
					{"address", 2, NUMBER, NULL},
					{"lines", 3, MESSAGES, line},
					{"attributeIndices", 4, NUMBERS, NULL},
					END};
static const struct field function[] = {{"nameStrindex", 1, NUMBER, NULL},
					{"systemNameStrindex", 2, NUMBER, NULL},
					{"filenameStrindex", 3, NUMBER, NULL},
					{"startLine", 4, NUMBER, NULL},
					END};
static const struct field attribute[] = {{"keyStrindex", 1, NUMBER, NULL},
					 {"value", 2, MESSAGE, any_value},
					 {"unitStrindex", 3, NUMBER, NULL},
					 END};
static const struct field stack[] = {{"locationIndices", 1, NUMBERS, NULL}, END};
static const struct field dictionary[] = {{"mappingTable", 1, MESSAGES, mapping},
					  {"locationTable", 2, MESSAGES, location},
					  {"functionTable", 3, MESSAGES, function},
					  {"stringTable", 5, TEXTS, NULL},
					  {"attributeTable", 6, MESSAGES, attribute},
					  {"stackTable", 7, MESSAGES, stack},
					  END};
static const struct field request[] = {{"resourceProfiles", 1, MESSAGES, resource_profiles},
				       {"dictionary", 2, MESSAGE, dictionary},
				       END};

static int put_message(struct buf *out, const json_t *object, const struct field *fields,
		       struct error *err);

static enum kind kind_of(const struct field *f)
{
	return f->kind & ~(unsigned int)LIST;
}

static int misplaced(const struct field *f, const char *expected, struct error *err)
{
	return error_set(err, -EBADMSG, "the request is damaged: \"%s\" is no %s", f->name,
			 expected);
}

/* An integer, also as a text: JSON's own may lose digits on the way. */
static bool number_of(const json_t *value, uint64_t *ret)
{
	struct str text = {json_string_value(value), json_string_length(value)};
	bool negative = str_starts(text, STR("-"));

	if (!json_is_string(value)) {
		*ret = json_is_true(value) ? 1 : (uint64_t)json_integer_value(value);
		return json_is_integer(value) || json_is_boolean(value);
	}
	if (!str_u64(negative ? str_skip(text, 1) : text, ret))
		return false;
	*ret = negative ? -*ret : *ret;
	return true;
}

/* What stands behind a number's tag, and in a packed list. */
static int put_number(struct buf *out, const json_t *value, const struct field *f,
		      struct error *err)
{
	uint64_t n;

	if (!number_of(value, &n))
		return misplaced(f, "integer", err);
	if (kind_of(f) == NUMBER) {
		wire_put(out, n);
		return 0;
	}
	for (int i = 0; i < 8; i++)
		buf_putc(out, (char)(n >> 8 * i));
	return 0;
}

static int put_value(struct buf *out, const json_t *value, const struct field *f, struct error *err)
{
	enum kind kind = kind_of(f);
	struct buf inner = BUF_NULL;
	int rc;

	if (kind == NUMBER || kind == FIXED64) {
		wire_put(out, f->number << 3 | (kind == NUMBER ? WIRE_VARINT : WIRE_I64));
		return put_number(out, value, f, err);
	}
	if (kind == TEXT && !json_is_string(value))
		return misplaced(f, "text", err);
	if (kind == TEXT) {
		wire_put_bytes(out, f->number,
			       (struct str){json_string_value(value), json_string_length(value)});
		return 0;
	}
	if (!json_is_object(value))
		return misplaced(f, "object", err);
	rc = put_message(&inner, value, f->of, err);
	if (!rc)
		wire_put_bytes(out, f->number, buf_str(&inner));
	buf_free(&inner);
	return rc;
}

static int put_list(struct buf *out, const json_t *list, const struct field *f, struct error *err)
{
	bool packed = f->kind == NUMBERS || f->kind == FIXED64S;
	struct buf inner = BUF_NULL;
	int rc = 0;

	if (!json_is_array(list))
		return misplaced(f, "list", err);

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		const json_t *value = json_array_get(list, i);

		rc = packed ? put_number(&inner, value, f, err) : put_value(out, value, f, err);
	}
	if (!rc && inner.failed)
		rc = -ENOMEM;
	if (!rc && packed)
		wire_put_bytes(out, f->number, buf_str(&inner));
	buf_free(&inner);
	return rc;
}

static int put_message(struct buf *out, const json_t *object, const struct field *fields,
		       struct error *err)
{
	int rc = 0;

	for (const struct field *f = fields; f->name && !rc; f++) {
		const json_t *value = json_object_get(object, f->name);

		if (!value || json_is_null(value))
			continue;
		rc = f->kind & LIST ? put_list(out, value, f, err) : put_value(out, value, f, err);
	}
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

int otlp_json_read(struct str body, struct buf *ret, struct error *err)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	int rc = json_body_load(body, &root, err);

	return rc ? rc : put_message(ret, root, request, err);
}
