/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Java methods as people read them. */
#pragma once

#include <stddef.h>

/* "java/util/HashMap", "put" → "java.util.HashMap.put". What a JVM makes up and numbers anew in
 * each process loses its number: "Main$$Lambda$14+0x80c0", "LambdaForm$MH/0x7f00",
 * "GeneratedMethodAccessor12". Writes at most max bytes and a zero byte behind them; how many. */
size_t java_name(const char *class_name, size_t n_class, const char *method, size_t n_method,
		 char *to, size_t max);
