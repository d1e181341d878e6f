/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a class's name is made up is found from its end. */
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

size_t java_name(const struct java_name *name, char *to)
{
	char dotted[JVM_CLASS_BYTES];
	size_t n = name->n_class < sizeof(dotted) ? name->n_class : sizeof(dotted), at;
	enum text_cut cut = TEXT_WHOLE;

	/* The end of a name that was cut says nothing of what was made up. */
	if (name->class_cut)
		cut = TEXT_CUT_END;
	else
		n = class_cut(name->class_name, n);
	for (size_t i = 0; i < n; i++)
		dotted[i] = name->class_name[i] == '/' ? '.' : name->class_name[i];
	at = text_to_utf8(to, TEXT_BYTES(JVM_CLASS_BYTES), dotted, n, TEXT_JAVA, cut);
	if (at > 0)
		to[at++] = '.';
	return at + text_to_utf8(to + at, TEXT_BYTES(JVM_METHOD_BYTES), name->method,
				 name->n_method, TEXT_JAVA,
				 name->method_cut ? TEXT_CUT_END : TEXT_WHOLE);
}
