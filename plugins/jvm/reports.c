/* SPDX-License-Identifier: Apache-2.0 */
/* A site is kept as an entry whose table has its methods and then their bytecodes. */
#include "jvm/reports.h"

#include <errno.h>
#include <string.h>

#include "jvm/java-name.h"
#include "runtime-kit/text.h"

#define NAME_HEAD (sizeof(struct jvm_name) - JVM_TEXT_BYTES)

static int name_keep(struct name_cache *cache, const struct jvm_name *r, size_t n)
{
	size_t text_bytes = (size_t)r->class_bytes + r->method_bytes + r->file_bytes;
	const char *method = r->text + r->class_bytes, *file = method + r->method_bytes;
	char function[JAVA_NAME_BYTES], path[TEXT_BYTES(JVM_FILE_BYTES)];
	struct name name = {.function = function, .file = path, .owner = r->head.process};

	if (n < NAME_HEAD || n - NAME_HEAD != text_bytes + r->line_bytes ||
	    r->class_bytes > JVM_CLASS_BYTES || r->method_bytes > JVM_METHOD_BYTES ||
	    r->file_bytes > JVM_FILE_BYTES || r->line_bytes > JVM_LINE_BYTES)
		return -EPROTO;
	if (r->class_bytes == 0) {
		function[0] = '~';
		name.n_function = 1 + (uint32_t)text_to_utf8(function + 1, sizeof(function) - 1,
							     method,
							     strnlen(method, r->method_bytes),
							     TEXT_UTF8, TEXT_WHOLE);
	} else {
		struct java_name parts = {r->text,         method,          r->class_bytes,
					  r->method_bytes, r->head.cut & 1, r->head.cut & 2};

		name.n_function = (uint32_t)java_name(&parts, function);
	}
	name.n_file = (uint32_t)text_to_utf8(path, sizeof(path), file, r->file_bytes, TEXT_JAVA,
					     r->head.cut & 4 ? TEXT_CUT_END : TEXT_WHOLE);
	name.kind = r->no_zero_bytes ? REPORT_METHOD_19 : REPORT_METHOD;
	name.table = (const unsigned char *)file + r->file_bytes;
	name.n_table = r->line_bytes;
	return name_cache_put(cache, r->head.id, &name);
}

static int site_keep(struct name_cache *cache, const struct jvm_site *r, size_t n)
{
	unsigned char table[JVM_INLINED * 10];
	struct name name = {.function = "-",
			    .file = "",
			    .n_function = 1,
			    .owner = r->head.process,
			    .kind = REPORT_SITE};

	if (n != sizeof(*r) || r->n == 0 || r->n > JVM_INLINED)
		return -EPROTO;
	memcpy(table, r->methods, 8 * r->n);
	memcpy(table + 8 * r->n, r->bcis, 2 * r->n);
	name.table = table;
	name.n_table = 10 * r->n;
	name.extra = r->cut != 0;
	return name_cache_put(cache, r->head.id, &name);
}

int report_keep(struct name_cache *cache, const void *report, size_t n, uint64_t *ret_id)
{
	/* The ring aligns its records to eight bytes. */
	const struct jvm_report *r = report;

	*ret_id = 0;
	if (n < sizeof(*r))
		return -EPROTO;
	*ret_id = r->id;
	if (r->kind == JVM_REPORT_SITE)
		return site_keep(cache, report, n);
	return r->kind == JVM_REPORT_NAME && n >= NAME_HEAD ? name_keep(cache, report, n) : -EPROTO;
}

int report_site(const struct name *name, struct report_site *ret)
{
	uint32_t n = name->n_table / 10;

	if (name->kind != REPORT_SITE || n == 0 || n > JVM_INLINED)
		return -EPROTO;
	memcpy(ret->methods, name->table, 8 * n);
	memcpy(ret->bcis, name->table + 8 * n, 2 * n);
	ret->n = n;
	ret->cut = name->extra != 0;
	return 0;
}
