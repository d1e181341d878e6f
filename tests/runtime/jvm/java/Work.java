// SPDX-License-Identifier: Apache-2.0
// Work of three kinds, each in a method of its own: CPU time without allocations, allocations, and
// waiting for a lock.
public class Work {
    static final Object LOCK = new Object();
    static volatile Object sink;
    static volatile long sum;

    static void burnCycles(long x) {
        for (int i = 0; i < 5000000; i++) {
            x = x * 31 + i;
        }
        sum = x;
    }

    static void makeGarbage() {
        for (int i = 0; i < 50; i++) {
            sink = new byte[65536];
        }
    }

    static void waitForLock() throws InterruptedException {
        synchronized (LOCK) {
            Thread.sleep(20);
        }
    }

    static void contend() {
        try {
            while (true) {
                waitForLock();
            }
        } catch (InterruptedException e) {
            return;
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 2; i++) {
            Thread thread = new Thread(Work::contend);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("works");
        for (long i = 0; ; i++) {
            burnCycles(i);
            makeGarbage();
            Thread.sleep(10);
        }
    }
}
