/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that call each other, for the seconds of time that are asked for. */
public class Chain {
	static long inner()
	{
		long n = 0;

		for (int i = 0; i < 100000; i++)
			n += i * (long)i % 7;
		return n;
	}

	static long middle()
	{
		return inner() + 1;
	}

	static long outer()
	{
		return middle() + 1;
	}

	public static void main(String[] arguments)
	{
		long n = 0, end = System.nanoTime() + (long)(Double.parseDouble(arguments[0]) * 1e9);

		while (System.nanoTime() < end)
			n += outer();
		System.out.println(n);
	}
}
