// SPDX-License-Identifier: Apache-2.0
// Virtual threads whose outer frames are in the Java heap. For recordings, from JDK 21 on.
public class V {
    static volatile long sink;

    static long leaf(int n) {
        long x = 0;
        for (int i = 0; i < 300000; i++) {
            x = x * 31 + i + n;
        }
        return x;
    }

    static long deep(int n) {
        if (n == 0) {
            Thread.yield();
            return leaf(n);
        }
        return deep(n - 1) + 1;
    }

    static void work() {
        for (int i = 0;; i++) {
            sink += deep(20);
            sink += leaf(i);
        }
    }

    public static void main(String[] a) throws Exception {
        Thread.ofVirtual().start(V::work);
        Thread.ofVirtual().start(V::work);
        Thread.ofVirtual().start(V::work).join();
    }
}
