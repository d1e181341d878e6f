// SPDX-License-Identifier: Apache-2.0
// A program whose call tree is known: each line that calls says whom, and calls.py holds every
// sample against that. It burns CPU until it is killed. The same classes run on JDK 8 to 26.
//
// "calls: A" after a line: while the line calls, the next frame of the program is A. "by library":
// frames of the JDK stand between. "by NAME": that native function stands between. "[N]" in
// Calls.turn: the line spins N times. "one", "four": the lines of spin, whose time is as 1 to 4.
// "burns": the line works without calling a function of the program.
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.function.IntSupplier;
import java.util.stream.IntStream;

public class Calls {
    static int bits, one = 1;
    static boolean natively;
    static volatile int sink;
    static Object[] kept = new Object[4096];
    static Shape[] shapes = {new Square(), new Circle(), new Line()};
    static Method reflected;
    static Runnable hidden;
    static Integer[] pair = {1, 2};

    // The generator meets each number below a power of two once, and no compiler can count that. The
    // division takes most of a round, far ahead of the safepoint at the round's end: a JVM knows the
    // lines of safepoints, and an address behind one belongs to the next.
    static int spin() {
        int n = 0, d = one, m = (1 << bits) - 1;
        do { n = n / d * 25173 + 13849 & m; } while (n != 0); // one
        m = 4 * m + 3;
        do { n = n / d * 25173 + 13849 & m; } while (n != 0); // four
        return m;
    }

    interface Shape {
        int area();
    }

    static final class Square implements Shape {
        public int area() {
            return spin(); // calls: Calls.spin
        }
    }

    static final class Circle implements Shape {
        public int area() {
            return spin() + 1; // calls: Calls.spin
        }
    }

    static final class Line implements Shape {
        public int area() {
            return spin() + 2; // calls: Calls.spin
        }
    }

    static int byInterface() {
        int x = 0;
        for (Shape shape : shapes) { // burns
            x += shape.area(); // calls: Calls$Square.area Calls$Circle.area Calls$Line.area
        }
        return x;
    }

    static int recurse(int depth) {
        if (depth == 0) { // burns
            return spin(); // calls: Calls.spin
        }
        return recurse(depth - 1) + 1; // calls: Calls.recurse
    }

    static int deep1() {
        return deep2() + 1; // calls: Calls.deep2
    }

    static int deep2() {
        return deep3() + 1; // calls: Calls.deep3
    }

    static int deep3() {
        int x = deep4(); // calls: Calls.deep4
        x += deep5(); // calls: Calls.deep5
        return x;
    }

    static int deep4() {
        return deep5() + 1; // calls: Calls.deep5
    }

    static int deep5() {
        return deep6() + 1; // calls: Calls.deep6
    }

    static int deep6() {
        return deep7() + 1; // calls: Calls.deep7
    }

    static int deep7() {
        return deep8() + 1; // calls: Calls.deep8
    }

    static int deep8() {
        return spin() + 1; // calls: Calls.spin
    }

    static int fails() {
        int x = spin(); // calls: Calls.spin
        throw new IllegalStateException("" + x); // burns
    }

    static int byException() {
        int x = 0;
        try {
            x += fails(); // calls: Calls.fails
        } catch (IllegalStateException e) {
            x += spin(); // calls: Calls.spin
        } finally {
            x += spin(); // calls: Calls.spin
        }
        return x;
    }

    static final class Slow implements Comparator<Object> {
        public int compare(Object a, Object b) {
            return spin() < 0 ? 0 : (Integer) a - (Integer) b; // calls: Calls.spin
        }
    }

    static final Slow SLOW = new Slow();

    static int bySort() {
        Integer[] a = pair.clone(); // burns
        Arrays.sort(a, SLOW); // calls: Calls$Slow.compare by library
        return a[0];
    }

    static int byLambda() {
        IntSupplier f = () -> spin(); // calls: Calls.spin
        return f.getAsInt(); // calls: Calls.lambda$byLambda$0 Calls.lambda$0 by library
    }

    static int mapped(int i) {
        return i + spin(); // calls: Calls.spin
    }

    static int byStream() {
        return IntStream.range(0, 2).map(Calls::mapped).sum(); // calls: Calls.mapped by library
    }

    public static int target() {
        return spin(); // calls: Calls.spin
    }

    static int byReflection() throws Exception {
        return (Integer) reflected.invoke(null); // calls: Calls.target by library
    }

    static synchronized int locked() {
        return spin(); // calls: Calls.spin
    }

    static int byLock() {
        synchronized (Calls.class) { // burns
            return locked(); // calls: Calls.locked
        }
    }

    static final class Hidden implements Runnable {
        public void run() {
            sink += spin(); // calls: Calls.spin
        }
    }

    static void byHidden() {
        hidden.run(); // calls: Calls$Hidden.run
    }

    static native int enter(int depth); // native Calls.enter calls: Calls.back by Java_Calls_enter

    static native int burn(int bits); // native Calls.burn burns

    static int back(int depth) {
        if (depth == 0) { // burns
            return spin(); // calls: Calls.spin
        }
        return enter(depth - 1); // calls: Calls.enter
    }

    static int byNative() {
        return enter(2); // calls: Calls.enter
    }

    static int native_() {
        return burn(bits); // calls: Calls.burn
    }

    static int garbage() {
        int x = 0;
        for (int i = 0; i < 4096; i++) { // burns
            kept[i * 31 & 4095] = new int[i & 127]; // burns
            x += Array.getLength(kept[i * 31 & 4095]); // burns
        }
        return x;
    }

    static void turn() throws Exception {
        recurse(20); // calls: Calls.recurse [1]
        deep1(); // calls: Calls.deep1 [2]
        byInterface(); // calls: Calls.byInterface [3]
        byException(); // calls: Calls.byException [3]
        bySort(); // calls: Calls.bySort [1]
        byLambda(); // calls: Calls.byLambda [1]
        byStream(); // calls: Calls.byStream [2]
        byReflection(); // calls: Calls.byReflection [1]
        byLock(); // calls: Calls.byLock [1]
        byHidden(); // calls: Calls.byHidden [1]
        if (natively) {
            byNative(); // calls: Calls.byNative [1]
            native_(); // calls: Calls.native_
        }
        garbage(); // calls: Calls.garbage
    }

    static void work(boolean yields) throws Exception {
        while (true) {
            turn(); // calls: Calls.turn
            if (yields) {
                Thread.yield(); // burns
            }
        }
    }

    static final class Worker implements Runnable {
        final boolean yields;

        Worker(boolean yields) {
            this.yields = yields;
        }

        public void run() {
            try {
                work(yields); // calls: Calls.work
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }
    }

    /** Hidden where the JDK has hidden classes (15); one that everybody can find before. */
    static Runnable hiddenOne() throws Exception {
        Class<?> options;
        try {
            options = Class.forName("java.lang.invoke.MethodHandles$Lookup$ClassOption");
        } catch (ClassNotFoundException e) {
            return new Hidden();
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = Calls.class.getResourceAsStream("Calls$Hidden.class")) {
            for (int c = in.read(); c >= 0; c = in.read()) {
                bytes.write(c);
            }
        }
        Method define = MethodHandles.Lookup.class.getMethod(
            "defineHiddenClass", byte[].class, boolean.class,
            Array.newInstance(options, 0).getClass());
        Object option = Array.newInstance(options, 1);
        Array.set(option, 0, options.getField("NESTMATE").get(null));
        Object lookup = define.invoke(MethodHandles.lookup(), bytes.toByteArray(), true, option);
        Class<?> made = ((MethodHandles.Lookup) lookup).lookupClass();
        return (Runnable) made.getDeclaredConstructor().newInstance();
    }

    /** Arguments: bits of the loops; "main", "threads", "virtual" or "yields"; a JNI library. */
    public static void main(String[] args) throws Exception {
        bits = Integer.parseInt(args[0]); // starts
        if (args.length > 2) {
            System.load(new File(args[2]).getAbsolutePath()); // starts
            natively = true;
        }
        reflected = Calls.class.getMethod("target"); // starts
        hidden = hiddenOne(); // starts
        Runnable worker = new Worker(args[1].equals("yields")); // starts
        if (args[1].equals("threads")) {
            for (int i = 0; i < 3; i++) {
                new Thread(worker).start(); // starts
            }
        } else if (!args[1].equals("main")) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class); // starts
            ((Thread) start.invoke(null, worker)).join(); // starts
        }
        work(false); // calls: Calls.work
    }
}
