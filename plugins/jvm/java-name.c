/* SPDX-License-Identifier: Apache-2.0 */
/* Written into the caller's buffer in one pass; which part of a class's name is made up is found
 * from its end. */
#include "jvm/java-name.h"

#include <string.h>

static int starts(const char *text, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static size_t digits_before(const char *text, size_t n)
{
	while (n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9')
		n--;
	return n;
}

/* Hidden classes end in '+', '.' or '/' and an address in hex (JDK 15), anonymous ones in '/' and a
 * number. */
static size_t suffix_cut(const char *text, size_t n)
{
	size_t at = n;

	while (at > 0 && ((text[at - 1] >= '0' && text[at - 1] <= '9') ||
			  (text[at - 1] >= 'a' && text[at - 1] <= 'f') || text[at - 1] == 'x'))
		at--;
	if (at == 0 || at == n)
		return n;
	if (text[at - 1] == '+' || (text[at - 1] == '/' && text[at] >= '0' && text[at] <= '9') ||
	    (text[at - 1] == '.' && starts(text + at, n - at, "0x")))
		return at - 1;
	return n;
}

static const char *find(const char *text, size_t n, const char *what)
{
	for (size_t i = 0; i + strlen(what) <= n; i++)
		if (memcmp(text + i, what, strlen(what)) == 0)
			return text + i;
	return NULL;
}

static size_t class_cut(const char *text, size_t n)
{
	const char *lambda = find(text, n, "$$Lambda");
	size_t at;

	n = suffix_cut(text, n);
	if (lambda)
		return (size_t)(lambda - text) + 8;
	at = digits_before(text, n);
	if (at < n && (find(text, at, "reflect/Generated") ||
		       starts(text, at, "java/lang/invoke/LambdaForm$")))
		return at;
	return n;
}

static size_t put(char *to, size_t max, size_t at, const char *text, size_t n)
{
	for (size_t i = 0; i < n && at < max; i++)
		to[at++] = text[i] == '/' ? '.' : text[i];
	return at;
}

size_t java_name(const char *class_name, size_t n_class, const char *method, size_t n_method,
		 char *to, size_t max)
{
	size_t at = put(to, max, 0, class_name, class_cut(class_name, n_class));

	at = put(to, max, at, ".", at > 0 ? 1 : 0);
	at = put(to, max, at, method, n_method);
	to[at] = 0;
	return at;
}
