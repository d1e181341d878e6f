/* SPDX-License-Identifier: Apache-2.0 */
/* What two builds call one function is one name, and what are two functions stays two. */
#include "export/function-name.h"
#include "testing/test.h"

static void expect_plain(const char *type, const char *name, const char *plain)
{
	struct buf out = BUF_NULL;

	function_name_plain(str_of(name), str_of(type), &out);
	expect_str(buf_str(&out), plain);
	buf_free(&out);
}

TEST(compilers_suffixes_go)
{
	static const char *const suffixes[] = {".cold",
					       ".cold.3",
					       ".part.0",
					       ".isra.12",
					       ".constprop.0.isra.1",
					       ".llvm.1234",
					       ".localalias",
					       ".lto_priv.0",
					       ".__uniq.77.llvm.5",
					       ".part.0.cold",
					       ".localalias.1",
					       ".clone.2"};
	char name[64];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "parse%s", suffixes[i]);
		expect_plain("native", name, "parse");
		expect_plain("kernel", name, "parse");
	}
	expect_plain("native", "shop::parse(int) [clone .cold]", "shop::parse(int)");
	expect_plain("native", "f(int) [clone .isra.0] [clone .cold]", "f(int)");
	expect_plain("rust", "shop::parse::h0123456789abcdef", "shop::parse");
	expect_plain("rust", "shop::parse::h0123456789abcdef.llvm.99", "shop::parse");
}

TEST(names_of_ones_own_stay)
{
	expect_plain("go", "main.cold", "main.cold");
	expect_plain("go", "main.run.func1.2", "main.run.func1.2");
	expect_plain("cpython", "Shop.part", "Shop.part");
	expect_plain("native", "main.run.func1.2", "main.run.func1.2");
	expect_plain("native", "operator[]", "operator[]");
	expect_plain("native", ".cold", ".cold");
	expect_plain("native", ".llvm.1", ".llvm.1");
	expect_plain("native", "part.0", "part.0");
	expect_plain("native", "f.partial.0", "f.partial.0");
	expect_plain("native", "a::h0123456789abcdeg", "a::h0123456789abcdeg");
	expect_plain("native", "::h0123456789abcdef", "::h0123456789abcdef");
	expect_plain("native", "", "");
	expect_plain("native", "x [clone .]", "x");
	expect_plain("native", "std::vector<int>::at(unsigned long)",
		     "std::vector<int>::at(unsigned long)");
	expect_plain("jvm", "Shop$1.run", "Shop$1.run");
	expect_plain("jvm", "Price2$Tax3.add4", "Price2$Tax3.add4");
	expect_plain("v8js", "a/b+0x12.c", "a/b+0x12.c");
}

TEST(what_hotspot_makes_up_goes)
{
	expect_plain("jvm", "Main$$Lambda$14/0x0000000800066840.run", "Main$$Lambda.run");
	expect_plain("jvm", "Main$$Lambda$14+0x80c0.run", "Main$$Lambda.run");
	expect_plain("jvm", "Main$$Lambda.0x00007f12.run", "Main$$Lambda.run");
	expect_plain("jvm", "Main$$Lambda.run", "Main$$Lambda.run");
	expect_plain("jvm", "java.lang.invoke.LambdaForm$MH/0x7f00.invoke",
		     "java.lang.invoke.LambdaForm$MH.invoke");
	expect_plain("jvm", "java.lang.invoke.LambdaForm$MH$12.invoke",
		     "java.lang.invoke.LambdaForm$MH$.invoke");
	expect_plain("jvm", "reflect.GeneratedMethodAccessor12.invoke",
		     "reflect.GeneratedMethodAccessor.invoke");
	expect_plain("jvm", "com.sun.proxy.$Proxy7.get", "com.sun.proxy.$Proxy.get");
	expect_plain("jvm", "Shop.lambda$main$0", "Shop.lambda$main");
	expect_plain("jvm", "Shop.lambda$null$3(Shop$2)", "Shop.lambda$null(Shop$2)");
	expect_plain("jvm", "Shop$Hidden/0x00000001.run", "Shop$Hidden.run");
}
