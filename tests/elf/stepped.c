/* SPDX-License-Identifier: Apache-2.0 */
/* A program to be stepped through (step.py): sorting, formatting, floating point, recursion, a
 * signal's handler and a jump out of deep calls, all within the first ten thousands of
 * instructions. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf back;
static volatile int handled;
static int numbers[16];

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void format(int n)
{
	char text[200];

	snprintf(text, sizeof(text), "%d %.17g %s %llx", n, 1.0 / (n + 3), "text", 1ull << n);
	puts(text);
}

static void handle(int signal)
{
	handled++;
	if (handled < 3)
		raise(signal);
	format(handled);
}

static int recurse(int n)
{
	char frame[64];

	memset(frame, n, sizeof(frame));
	if (n == 0)
		longjmp(back, 1);
	return recurse(n - 1) + frame[n % 64];
}

int main(void)
{
	signal(SIGUSR1, handle);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 16; k++)
			numbers[k] = rand() % 100;
		qsort(numbers, 16, sizeof(numbers[0]), by_number);
		format(numbers[3]);
		raise(SIGUSR1);
		if (setjmp(back) == 0)
			recurse(30);
		free(realloc(malloc(100), 100000));
	}
	return handled == 0;
}
