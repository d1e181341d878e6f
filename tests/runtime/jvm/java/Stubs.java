// SPDX-License-Identifier: Apache-2.0
// Works to be recorded in the JVM's stubs: chained method handles, Java that native code calls, and
// compiled code that pushes words while it searches a text. For JVMs from 22 on.
import java.lang.foreign.*;
import java.lang.invoke.*;
import java.util.Random;

public class Stubs {
	static int burn(int n) {
		for (int i = 0; i < 300; i++)
			n = n * 31 + i;
		return n;
	}

	static int compare(MemorySegment a, MemorySegment b) {
		burn(1);
		return Integer.compare(a.get(ValueLayout.JAVA_INT, 0), b.get(ValueLayout.JAVA_INT, 0));
	}

	public static void main(String[] arguments) throws Throwable {
		var lookup = MethodHandles.lookup();
		var burn = lookup.findStatic(Stubs.class, "burn",
				MethodType.methodType(int.class, int.class));
		var site = new MutableCallSite(burn);
		var linker = Linker.nativeLinker();
		var pointer = ValueLayout.ADDRESS.withTargetLayout(ValueLayout.JAVA_INT);
		var compare = linker.upcallStub(
				lookup.findStatic(Stubs.class, "compare", MethodType.methodType(
						int.class, MemorySegment.class, MemorySegment.class)),
				FunctionDescriptor.of(ValueLayout.JAVA_INT, pointer, pointer),
				Arena.global());
		var sort = linker.downcallHandle(linker.defaultLookup().find("qsort").get(),
				FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG,
						ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
		var numbers = Arena.global().allocate(4 * 256);
		var random = new Random();
		var texts = new String[64];
		for (int i = 0; i < 64; i++)
			texts[i] = "v" + i * i * 1000;
		MethodHandle chain = burn;
		for (int i = 0; i < 60; i++)
			chain = MethodHandles.filterReturnValue(chain, burn);
		var invoker = site.dynamicInvoker();
		for (int n = 0;; n++) {
			for (int i = 0; i < 256; i++)
				numbers.setAtIndex(ValueLayout.JAVA_INT, i, random.nextInt());
			sort.invokeExact(numbers, 256L, 4L, compare);
			for (int i = 0; i < 10000; i++)
				random.setSeed(texts[i & 63].indexOf(texts[n & 7]));
			if (n % 1000 == 0)
				site.setTarget(n % 2000 == 0 ? chain : burn);
			int unused = (int) invoker.invokeExact(n) + (int) burn.invokeWithArguments(n);
		}
	}
}
