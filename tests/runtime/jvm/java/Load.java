// SPDX-License-Identifier: Apache-2.0
// Burns CPU in a call tree that tests know. The argument says which.
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntBinaryOperator;
import java.util.function.IntUnaryOperator;

public class Load {
    interface Shape { int area(int n); }
    static final class Square implements Shape {
        public int area(int n) { return mix(n, 3); }
    }
    static final class Circle implements Shape {
        public int area(int n) { return mix(n, 5) + 1; }
    }
    static final class Line implements Shape {
        public int area(int n) { return mix(n, 7) + 2; }
    }

    static volatile long sink;

    static int mix(int n, int by) {
        int x = n;
        for (int i = 0; i < 40; i++) {
            x = x * by + i;
        }
        return x;
    }

    static int leafA(int n) {
        int x = 0;
        for (int i = 0; i < 400; i++) {
            x += mix(n + i, 3);
        }
        return x;
    }

    static int middleA(int n) {
        return leafA(n) + 1;
    }

    static int outerA(int n) {
        int x = 0;
        for (int i = 0; i < 5; i++) {
            x += middleA(n + i);
        }
        return x;
    }

    static int recurse(int n, int depth) {
        if (depth == 0) {
            return leafA(n);
        }
        return recurse(n, depth - 1) + 1;
    }

    static int virtuals(int n) {
        Shape[] shapes = {new Square(), new Circle(), new Line()};
        int x = 0;
        for (int i = 0; i < 300; i++) {
            x += shapes[i % 3].area(n + i);
        }
        return x;
    }

    static int thrower(int n) {
        if ((n & 3) == 0) {
            throw new IllegalStateException("x" + n);
        }
        return mix(n, 11);
    }

    static int exceptions(int n) {
        int x = 0;
        for (int i = 0; i < 60; i++) {
            try {
                x += thrower(n + i);
            } catch (IllegalStateException e) {
                x += e.getMessage().length();
            }
        }
        return x;
    }

    static int lambdas(int n) {
        IntUnaryOperator twice = a -> mix(a, 2) + mix(a, 3);
        IntBinaryOperator sum = (a, b) -> a + mix(b, 13);
        int x = 0;
        for (int i = 0; i < 200; i++) {
            x = sum.applyAsInt(x, twice.applyAsInt(n + i));
        }
        return x;
    }

    static int strings(int n) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            b.append(n + i).append(':');
        }
        char[] from = b.toString().toCharArray();
        char[] to = new char[from.length];
        for (int i = 0; i < 20; i++) {
            System.arraycopy(from, 0, to, 0, from.length);
        }
        return to.length + b.toString().hashCode();
    }

    static int maps(int n) {
        Map<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < 200; i++) {
            map.merge((n + i) % 97, 1, Integer::sum);
        }
        return map.size();
    }

    static double math(int n) {
        double x = 0;
        for (int i = 0; i < 100; i++) {
            x += Math.sin(n + i) + Math.pow(1.0 + i, 1.5) + Math.log(2.0 + i);
        }
        return x;
    }

    static int locked(int n) {
        synchronized (Thread.currentThread()) {
            return leafA(n);
        }
    }

    static int reflective(int n) throws Exception {
        return (Integer) Load.class.getDeclaredMethod("leafA", int.class).invoke(null, n);
    }

    static long once(int n) throws Exception {
        long x = outerA(n);
        x += recurse(n, 30);
        x += virtuals(n);
        x += exceptions(n);
        x += lambdas(n);
        x += strings(n);
        x += maps(n);
        x += (long) math(n);
        x += locked(n);
        x += reflective(n);
        return x;
    }

    static void run() throws Exception {
        for (int n = 0;; n++) {
            sink += once(n);
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("threads")) {
            for (int i = 0; i < 3; i++) {
                Thread t = new Thread(() -> {
                    try {
                        run();
                    } catch (Exception e) {
                        throw new RuntimeException(e);
                    }
                }, "load-" + i);
                t.start();
            }
        }
        run();
    }
}
