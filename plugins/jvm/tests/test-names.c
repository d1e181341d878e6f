/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people read them, lines of bytecode, and reports that are believed only as far as they
 * go. */
#include "jvm/java-name.h"
#include "jvm/line-table.h"
#include "jvm/reports.h"

#include "testing/test.h"

#include <string.h>

static struct str name_of(const char *class_name, const char *method, int class_cut)
{
	static char to[JAVA_NAME_BYTES];
	struct java_name name = {class_name,     method,    strlen(class_name),
				 strlen(method), class_cut, 0};

	return (struct str){to, java_name(&name, to)};
}

/* What a JVM numbers anew in each process has no number; all else is kept. */
TEST(names_are_read)
{
	static const char *const cases[][3] = {
		{"java/util/HashMap", "put", "java.util.HashMap.put"},
		{"Main", "<init>", "Main.<init>"},
		{"a/Outer$Inner$1", "run", "a.Outer$Inner$1.run"},
		{"Main$$Lambda$14+0x0000000800c03000", "apply", "Main$$Lambda.apply"},
		{"Main$$Lambda$1/1234567", "apply", "Main$$Lambda.apply"},
		{"Main$$Lambda+0x00007f00c8001000", "run", "Main$$Lambda.run"},
		{"Main$$Lambda.0x00007f00c8001000", "run", "Main$$Lambda.run"},
		{"java/lang/invoke/LambdaForm$MH+0x0000000800c00400", "invoke",
		 "java.lang.invoke.LambdaForm$MH.invoke"},
		{"java/lang/invoke/LambdaForm$DMH0012", "invoke",
		 "java.lang.invoke.LambdaForm$DMH.invoke"},
		{"jdk/internal/reflect/GeneratedMethodAccessor12", "invoke",
		 "jdk.internal.reflect.GeneratedMethodAccessor.invoke"},
		{"com/example/Face0b", "decade", "com.example.Face0b.decade"},
		{"", "x", "x"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_str(name_of(cases[i][0], cases[i][1], 0), cases[i][2]);
}

/* Java's own UTF-8 becomes everybody's, and a cut shows. */
TEST(names_are_utf8)
{
	expect_str(name_of("a/\xed\xa0\xbd\xed\xb0\xb4", "\xc3\xa9", 0), "a.🐴.é");
	expect_str(name_of("a/Long\xc3", "run", 1), "a.Long….run");
}

/* The line is the last one that begins at or before the bytecode. */
TEST(lines_are_found)
{
	/* bci 0 → 10, 5 → 11, 300 → 9 (by compressed numbers of JDK 17), end */
	static const uint8_t table[] = {0xff, 0x00, 20, 5 << 3 | 1, 0xff, 206, 6, 3, 0};
	uint32_t first = 0;

	expect_eq(line_find(table, sizeof(table), 0, 0, &first), 10);
	expect_eq(line_find(table, sizeof(table), 0, 7, &first), 11);
	expect_eq(line_find(table, sizeof(table), 0, 299, &first), 11);
	expect_eq(line_find(table, sizeof(table), 0, 301, &first), 9);
	expect_eq(first, 9);
	/* behind a cut nothing is known */
	expect_eq(line_find(table, 4, 0, 400, &first), 0);
	expect_eq(line_find(table, 0, 0, 0, &first), 0);
}

static uint32_t noise_state = 12345;

static uint32_t noise(void)
{
	noise_state = noise_state * 1664525u + 1013904223u;
	return noise_state >> 8;
}

/* Any bytes end, and give a line that a class file can have. */
TEST(lines_of_noise)
{
	uint8_t bytes[64];
	uint32_t first;

	for (int i = 0; i < 100000; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)noise();
		expect(line_find(bytes, noise() % 64, i & 1, noise() % 999, &first) <= 65535);
	}
}

/* A report of the program's, as long as its texts. */
static size_t report_make(struct jvm_name *r, const char *class_name, const char *method)
{
	memset(r, 0, sizeof(*r));
	r->head = (struct jvm_report){JVM_REPORT_NAME, 0, 3, 7};
	r->class_bytes = (__u16)strlen(class_name);
	r->method_bytes = (__u16)strlen(method);
	memcpy(r->text, class_name, r->class_bytes);
	memcpy(r->text + r->class_bytes, method, r->method_bytes);
	return sizeof(*r) - JVM_TEXT_BYTES + r->class_bytes + r->method_bytes;
}

/* What is reported is found under its id, a method's and a site's. */
TEST(reports_are_kept)
{
	static struct jvm_name r;
	struct jvm_site site = {{JVM_REPORT_SITE, 0, 3, 9}, 2, 1, {7, 8}, {3, JVM_BCI_NONE}};
	struct name_cache *cache = name_cache_new(1 << 20);
	size_t n = report_make(&r, "a/B", "c");
	struct report_site found;
	struct name name;
	uint64_t id;

	expect_eq(report_keep(cache, &r, n, &id), 0);
	expect_eq(id, 7);
	expect_eq(report_keep(cache, &site, sizeof(site), &id), 0);
	expect(name_cache_find(cache, 7, &name));
	expect(name.n_function == 5 && memcmp(name.function, "a.B.c", 5) == 0);
	expect(name_cache_find(cache, 9, &name));
	expect_eq(report_site(&name, &found), 0);
	expect(found.n == 2 && found.cut && found.methods[1] == 8 && found.bcis[0] == 3);
	name_cache_free(cache);
}

/* A process that fills the cache loses its own names, and no other's: of a hundred others some may
 * share its part, but hardly ten. */
TEST(a_full_cache_keeps_other_processes_names)
{
	static struct jvm_name r;
	struct name_cache *cache = name_cache_new(64 << 10);
	size_t n = report_make(&r, "a/B", "c");
	uint64_t id, gone;
	int lost = 0, lost_of_others = 0;

	for (r.head.id = 100; r.head.id < 4000; r.head.id++) {
		r.head.process = r.head.id < 200 ? (uint32_t)r.head.id : 3;
		expect_eq(report_keep(cache, &r, n, &id), 0);
		while ((gone = name_cache_excess(cache)) != 0) {
			lost++;
			lost_of_others += gone < 200;
		}
	}
	expect(lost > 3000 && lost_of_others < 10);
	name_cache_free(cache);
}

/* A report whose lengths do not fit is none. */
TEST(reports_are_not_believed)
{
	static struct jvm_name r;
	static union {
		unsigned char bytes[sizeof(struct jvm_name)];
		struct jvm_name name;
	} forged;
	struct name_cache *cache = name_cache_new(1 << 20);
	size_t n = report_make(&r, "a/B", "c");
	uint64_t id;

	expect(report_keep(cache, &r, n - 1, &id) != 0);
	expect(report_keep(cache, &r, 4, &id) != 0 && id == 0);
	r.class_bytes = JVM_CLASS_BYTES + 1;
	expect(report_keep(cache, &r, sizeof(r), &id) != 0);
	for (int i = 0; i < 20000; i++) {
		for (size_t k = 0; k < 64; k++)
			forged.bytes[k] = (unsigned char)noise();
		forged.name.head.kind = 1 + noise() % 2;
		report_keep(cache, &forged, noise() % 2 ? 64 : sizeof(struct jvm_site), &id);
		while (name_cache_excess(cache) != 0)
			;
	}
	name_cache_free(cache);
}
