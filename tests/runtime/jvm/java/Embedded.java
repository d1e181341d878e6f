// SPDX-License-Identifier: Apache-2.0
// A Java program that has libandiron in its own process. Threads of its do what the JVM answers by
// handlers of signals and by stopping threads, while it is profiled and after.
public class Embedded {
    static native String begin(String configuration);

    static native String end();

    static volatile boolean working = true;
    static volatile byte[] garbage;
    static volatile long sink;
    static int[] nothing;

    static long burn(long n) {
        long x = 1;
        for (long i = 0; i < n; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    // A read of page 0, and one of a thread's guard page.
    static void expectSignals() {
        try {
            sink = nothing[1];
            throw new AssertionError("null was read");
        } catch (NullPointerException e) {
            sink++;
        }
        try {
            deep(0);
        } catch (StackOverflowError e) {
            sink++;
        }
    }

    static void work() {
        for (int round = 0; working; round++) {
            sink += burn(1000000);
            garbage = new byte[1 << 16];
            if (round % 64 == 0) {
                expectSignals();
            }
        }
    }

    static void expectNothing(String text) {
        if (text != null) {
            throw new AssertionError(text);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        Thread[] threads = {new Thread(Embedded::work), new Thread(Embedded::work)};
        for (Thread thread : threads) {
            thread.setDaemon(true);
            thread.start();
        }
        for (int round = 0; round < 3; round++) {
            expectNothing(begin(arguments[1]));
            Thread.sleep(1500);
            System.gc();
            System.out.println(end());
        }
        working = false;
        for (Thread thread : threads) {
            thread.join();
        }
        expectSignals();
        System.out.println("ended");
    }
}
