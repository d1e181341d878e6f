// SPDX-License-Identifier: Apache-2.0
// Where stubs of the JVM are: mathematics, copies, exceptions, monitors, checksums. For recordings.
public class M {
    static volatile double sink;

    static double math(int n) {
        double x = 0;
        for (int i = 0; i < 100; i++) {
            x += Math.sin(n + i) + Math.pow(1.0 + i, 1.5) + Math.log(2.0 + i);
            x += Math.exp(i * 0.01) + Math.tan(i) + Math.cos(i) + Math.log10(i + 1);
        }
        return x;
    }

    static int copies(int n) {
        byte[] a = new byte[200 + n % 50], b = new byte[400];
        int[] c = new int[64];
        Object[] to = new Object[32], from = new String[32];
        for (int i = 0; i < 50; i++) {
            System.arraycopy(a, 1, b, 3, a.length - 1);
            System.arraycopy(c, 0, c, 7, 40);
            System.arraycopy(from, 0, to, 0, 32);
            java.util.Arrays.fill(c, i);
        }
        return b.length;
    }

    static int deep(int n) {
        if (n == 0) {
            throw new IllegalStateException();
        }
        return deep(n - 1) + 1;
    }

    static int exc(int n) {
        int x = 0;
        for (int i = 0; i < 20; i++) {
            try {
                x += deep(5);
            } catch (IllegalStateException e) {
                x++;
            }
        }
        return x;
    }

    static int sync(Object o, int n) {
        int x = 0;
        for (int i = 0; i < 50; i++) {
            synchronized (o) {
                x += n;
            }
        }
        return x;
    }

    static long crc(int n) {
        java.util.zip.CRC32 c = new java.util.zip.CRC32();
        byte[] b = new byte[1000];
        for (int i = 0; i < 10; i++) {
            c.update(b, 0, b.length);
        }
        return c.getValue();
    }

    static int hash(int n) throws Exception {
        return java.security.MessageDigest.getInstance("SHA-256").digest(new byte[2000])[0];
    }

    static double once(int n) throws Exception {
        return math(n) + copies(n) + exc(n) + sync(M.class, n) + crc(n) + hash(n);
    }

    static void run() throws Exception {
        for (int n = 0;; n++) {
            sink += once(n);
        }
    }

    public static void main(String[] a) throws Exception {
        run();
    }
}
