/* SPDX-License-Identifier: Apache-2.0 */
/* Twenty frames of Java over the JVM's own. */
public class Deep {
	static long work()
	{
		long n = 0;

		for (int i = 0; i < 30000; i++)
			n += i * (long)i % 7;
		return n;
	}

	static long level(int n)
	{
		return n == 0 ? work() : level(n - 1) + 1;
	}

	public static void main(String[] arguments) throws InterruptedException
	{
		long pause = (long)(Double.parseDouble(arguments[0]) * 1000);

		for (;;) {
			level(17);
			if (pause > 0)
				Thread.sleep(pause);
		}
	}
}
