/* SPDX-License-Identifier: Apache-2.0 */
/* Most time is spent in PLT stubs and what they jump to. With a second argument it is the path of
 * the library, which is then opened and closed all the time: mappings come, go and move. */
#include "burn.h"

#include <dlfcn.h>

extern int small_a(int x), small_b(int x), small_c(int x);

static NOINLINE int calls(int x)
{
	for (int i = 0; i < 20000; i++)
		x = small_c(small_b(small_a(x)));
	return x;
}

static NOINLINE void opened(const char *path)
{
	void *library = dlmopen(LM_ID_NEWLM, path, RTLD_LAZY);
	int (*call)(int) = library ? (int (*)(int))dlsym(library, "small_c") : NULL;

	for (int i = 0, x = 1; call && i < 100000; i++)
		burn_result += (unsigned long)(x = call(x));
	if (library)
		dlclose(library);
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning()) {
		burn_result += (unsigned long)calls((int)burn_result);
		if (argc > 2)
			opened(argv[2]);
	}
	return 0;
}
