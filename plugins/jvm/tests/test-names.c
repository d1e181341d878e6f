/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people read them, and lines of bytecode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jvm/java-name.h"
#include "jvm/line-table.h"

static int n_tests, n_failed;

static void expect(int ok, const char *what)
{
	n_failed += !ok;
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++n_tests, what);
}

/* What a JVM numbers anew in each process has no number; all else is kept. */
static void names_are_read(void)
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
	char to[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = java_name(cases[i][0], strlen(cases[i][0]), cases[i][1],
				     strlen(cases[i][1]), to, sizeof(to) - 1);

		expect(n == strlen(to) && strcmp(to, cases[i][2]) == 0, cases[i][2]);
	}
	expect(java_name("abcdef", 6, "gh", 2, to, 4) == 4 && strcmp(to, "abcd") == 0, "cut");
}

/* The line is the last one that begins at or before the bytecode. */
static void lines_are_found(void)
{
	/* bci 0 → 10, 5 → 11, 300 → 9 (by compressed numbers of JDK 17), end */
	static const uint8_t table[] = {0xff, 0x00, 20, 5 << 3 | 1, 0xff, 206, 6, 3, 0};
	uint32_t first = 0;

	expect(line_find(table, sizeof(table), 0, 0, &first) == 10, "line at the beginning");
	expect(line_find(table, sizeof(table), 0, 7, &first) == 11, "line in the middle");
	expect(line_find(table, sizeof(table), 0, 299, &first) == 11, "line before the last");
	expect(line_find(table, sizeof(table), 0, 301, &first) == 9 && first == 9,
	       "line at the end");
	expect(line_find(table, 4, 0, 400, &first) == 0, "behind a cut nothing is known");
	expect(line_find(table, 0, 0, 0, &first) == 0, "no table");
}

/* Any bytes end, and give a line that a class file can have. */
static void lines_of_noise(void)
{
	uint8_t bytes[64];
	uint32_t first, ok = 1;

	for (int i = 0; i < 100000; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(rand() >> 7);
		ok &= line_find(bytes, (uint64_t)(rand() % 64), i & 1, (uint32_t)rand() % 999,
				&first) <= 65535;
	}
	expect((int)ok, "noise");
}

int main(void)
{
	names_are_read();
	lines_are_found();
	lines_of_noise();
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
