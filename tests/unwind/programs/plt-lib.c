/* SPDX-License-Identifier: Apache-2.0 */
/* A library of functions so small that calling them through the PLT is most of the work. */
extern int small_a(int x), small_b(int x), small_c(int x);

int small_a(int x)
{
	return x + 1;
}

int small_b(int x)
{
	return small_a(x) ^ 3;
}

int small_c(int x)
{
	return small_b(x) - small_a(x);
}
