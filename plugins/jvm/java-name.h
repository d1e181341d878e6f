/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Java methods as people read them. */
#pragma once

#include <stddef.h>

#include "jvm/walk/jvm-records.h"
#include "runtime-kit/text.h"

#define JAVA_NAME_BYTES (TEXT_BYTES(JVM_CLASS_BYTES) + 1 + TEXT_BYTES(JVM_METHOD_BYTES))

/* As the JVM has them, in its own UTF-8, at most JVM_CLASS_BYTES and JVM_METHOD_BYTES, and whether
 * they are longer. */
struct java_name {
	const char *class_name, *method;
	size_t n_class, n_method;
	int class_cut, method_cut;
};

/* "java/util/HashMap", "put" → "java.util.HashMap.put". What a JVM makes up and numbers anew in
 * each process loses its number: "Main$$Lambda$14+0x80c0", "LambdaForm$MH/0x7f00",
 * "GeneratedMethodAccessor12". Writes at most JAVA_NAME_BYTES of UTF-8; how many. */
size_t java_name(const struct java_name *name, char *to);
