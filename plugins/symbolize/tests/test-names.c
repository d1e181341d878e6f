/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of names: demangling in its degrees, cleaning, and both with what a stranger may write. */
#include "symbolize/names/sanitize.h"
#include "symbolize/names/jit-names.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/simplify.h"

#include "base/clock.h"
#include "testing/test.h"

#include <andiron/batch.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static void is(const char *mangled, const char *simplified, const char *templates, const char *full)
{
	const char *expected[] = {NULL, simplified, templates, full};
	struct buf out = BUF_NULL;

	for (uint32_t wish = ANDIRON_DEMANGLE_SIMPLIFIED; wish <= ANDIRON_DEMANGLE_FULL; wish++) {
		int r = demangle(str_of(mangled), wish, &out);

		expect_eq(r, expected[wish][0] != '\0');
		expect_str(buf_str(&out), expected[wish]);
	}
	expect_eq(demangle(str_of(mangled), ANDIRON_DEMANGLE_NONE, &out), 0);
	buf_free(&out);
}

/* Each degree of C++ shows what it says: enclosing parameters go, operators, lambdas and anonymous
 * namespaces stay. */
TEST(cplus_in_four_degrees)
{
	is("_ZN3foo3barIiEEiT_", "foo::bar", "foo::bar<int>", "int foo::bar<int>(int)");
	is("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back",
	   "std::vector<int, std::allocator<int> >::push_back",
	   "std::vector<int, std::allocator<int> >::push_back(int const&)");
	is("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()",
	   "main::{lambda(int)#1}::operator()", "main::{lambda(int)#1}::operator()(int) const");
	is("_ZZN1A1fEiE3bar", "A::f::bar", "A::f::bar", "A::f(int)::bar");
	is("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo", "(anonymous namespace)::foo",
	   "(anonymous namespace)::foo()");
	is("_ZlsRSoRK1A", "operator<<", "operator<<", "operator<<(std::ostream&, A const&)");
	is("_ZN1AltERKS_", "A::operator<", "A::operator<", "A::operator<(A const&)");
	is("_ZN1AlsIiEERS_T_", "A::operator<<", "A::operator<< <int>",
	   "A& A::operator<< <int>(int)");
	is("_ZN1AptEv", "A::operator->", "A::operator->", "A::operator->()");
	is("_ZThn8_N1A1fEv", "non-virtual thunk to A::f", "non-virtual thunk to A::f",
	   "non-virtual thunk to A::f()");
	is("_ZN1BILb1EE1fEv", "B::f", "B<true>::f", "B<true>::f()");
	is("_Z3addIiENSt9enable_ifIXsr3std9is_signedIT_EE5valueET_E4typeEi", "add", "add<int>",
	   "std::enable_if<std::is_signed<int>::value, int>::type add<int>(int)");
}

/* A clone has its function's name. */
TEST(clones_have_their_functions_name)
{
	is("_ZN3foo3barEi.part.0.cold", "foo::bar", "foo::bar", "foo::bar(int)");
	is("_ZN3foo3barEi.llvm.1234567", "foo::bar", "foo::bar", "foo::bar(int)");
}

/* Rust, old and new: a path in brackets is a path; the hash is noise. */
TEST(rust_in_four_degrees)
{
	is("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
	   "core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt::h0123456789abcdef");
	is("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	   "3bar17h930b740aa94f1d3aE",
	   "<Test + 'static as foo::Bar>::bar", "<Test + 'static as foo::Bar<Test>>::bar",
	   "<Test + 'static as foo::Bar<Test>>::bar::h930b740aa94f1d3a");
	is("_RNvC6_123foo3bar", "123foo::bar", "123foo::bar", "123foo::bar");
	is("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of", "std::mem::align_of::<usize>",
	   "std::mem::align_of::<usize>");
	is("_RNvNtNtCs1234_7mycrate3foo3bar3baz.llvm.123", "mycrate::foo::bar::baz",
	   "mycrate::foo::bar::baz", "mycrate::foo::bar::baz");
}

/* What rustc 1.95 makes of generics, methods, traits' own methods, closures, constants, function
 * and tuple types, and names beyond ASCII; with templates as llvm-cxxfilt 14 shows them. */
TEST(rust_of_today_in_four_degrees)
{
	static const char *const names[][3] = {
		{"_RINvNtCs4Q2Qx8jI5j6_1a6shapes5applyNCNvB4_2go0EB4_", "a::shapes::apply",
		 "a::shapes::apply::<a::go::{closure#0}>"},
		{"_RINvNtCs4Q2Qx8jI5j6_1a6shapes5fixedKj7_Kc78_EB4_", "a::shapes::fixed",
		 "a::shapes::fixed::<7, 'x'>"},
		{"_RINvNtCs4Q2Qx8jI5j6_1a6shapes5takes"
		 "FG_RL0_eEINtNtCsgEmfK2I1SDS_4core6option6OptionlEEB4_",
		 "a::shapes::takes",
		 "a::shapes::takes::<for<'a> fn(&'a str) -> core::option::Option<i32>>"},
		{"_RINvNtCs4Q2Qx8jI5j6_1a6shapes5takesThPyEEB4_", "a::shapes::takes",
		 "a::shapes::takes::<(u8, *const u64)>"},
		{"_RNCNvCs4Q2Qx8jI5j6_1a2go0B3_", "a::go::{closure#0}", "a::go::{closure#0}"},
		{"_RNvMNtCs4Q2Qx8jI5j6_1a6shapesINtB2_4PairyAhj3_E5firstB4_",
		 "<a::shapes::Pair>::first", "<a::shapes::Pair<u64, [u8; 3]>>::first"},
		{"_RNvXs_NtCs4Q2Qx8jI5j6_1a6shapesINtB4_4PairyAhj3_ENtB4_4Area4areaB6_",
		 "<a::shapes::Pair as a::shapes::Area>::area",
		 "<a::shapes::Pair<u64, [u8; 3]> as a::shapes::Area>::area"},
		{"_RNvYINtNtCs4Q2Qx8jI5j6_1a6shapes4PairyAhj3_ENtB5_4Area5twiceB7_",
		 "<a::shapes::Pair as a::shapes::Area>::twice",
		 "<a::shapes::Pair<u64, [u8; 3]> as a::shapes::Area>::twice"},
		{"_RNvNtCs4Q2Qx8jI5j6_1a6shapesu8gdel_5qa",
		 "a::shapes::g\xc3\xb6"
		 "del",
		 "a::shapes::g\xc3\xb6"
		 "del"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is(names[i][0], names[i][1], names[i][2], names[i][2]);
}

/* Swift's names, of all its manglings, go on as they are, whole. */
TEST(swift_is_left_as_it_is)
{
	static const char *const names[] = {
		"$s4main3fooyyF",  "_$s4main5ShapeC4areaSiyF",
		"$S4main3fooyyF",  "_$S4main3fooyyF",
		"_T04main3fooyyF", "_T0s5print_9separator10terminatoryypd_S2StF",
		"_TtC4main5Shape"};
	struct buf scratch = BUF_NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		is(names[i], "", "", "");
		expect_str(sanitize_name(str_of(names[i]), &scratch), names[i]);
	}
	buf_free(&scratch);
}

/* What is no mangled name stays as it is. */
TEST(other_names_are_left_alone)
{
	is("main", "", "", "");
	is("", "", "", "");
	is("_", "", "", "");
	is("_Z", "", "", "");
	is("_Zzzz", "", "", "");
	is("_R", "", "", "");
	is("_RNvC6_", "", "", "");
}

/* Names with unmatched brackets are shown as they are, not cut to pieces. */
TEST(unmatched_brackets_change_nothing)
{
	static const char *const names[] = {"a<b",      "f(x",       "{",
					    "a<b(c>d)", "operator<", "a<(<<<)>x"};
	struct buf out = BUF_NULL;

	for (size_t i = 0; i < 5; i++) {
		buf_clear(&out);
		expect_eq(simplify(str_of(names[i]), ANDIRON_DEMANGLE_SIMPLIFIED, &out), 0);
		expect_str(buf_str(&out), names[i]);
	}
	buf_clear(&out);
	expect_eq(simplify(str_of(names[5]), ANDIRON_DEMANGLE_SIMPLIFIED, &out), 0);
	expect_str(buf_str(&out), "ax");
	buf_free(&out);
}

static void put_number(struct buf *b, uint64_t value, unsigned int base)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (value >= base)
		put_number(b, value / base, base);
	value %= base;
	buf_putc(b, base == 36 && value >= 10 ? (char)('A' + value - 10) : digits[value]);
}

/* B<A, A>, B<B<A, A>, B<A, A>>, …: each argument is twice the one before. */
static void explode_cplus(struct buf *name)
{
	buf_printf(name, "_Z1fI1A1BIS0_S0_E");
	for (uint64_t i = 0; i < 50; i++) {
		buf_printf(name, "S1_I");
		for (int twice = 0; twice < 2; twice++) {
			buf_putc(name, 'S');
			put_number(name, i + 2, 36);
			buf_putc(name, '_');
		}
		buf_putc(name, 'E');
	}
	buf_printf(name, "Evv");
}

/* The same as the pattern of a pack expansion, which is searched before a byte is printed. The n
 * names B are the first n substitutions, A is the next. */
static void explode_pack(struct buf *name)
{
	const uint64_t n = 50;

	buf_printf(name, "_Z1fDp");
	for (uint64_t i = 0; i < n; i++)
		buf_printf(name, "1BI");
	buf_printf(name, "1A");
	for (uint64_t i = 0; i < n; i++) {
		buf_putc(name, 'S');
		put_number(name, n + i - 1, 36);
		buf_printf(name, "_E");
	}
}

/* Templates times references to their parameters, that much stack. */
static void explode_scopes(struct buf *name)
{
	buf_printf(name, "_Z1fI");
	for (int i = 0; i < 500; i++)
		buf_printf(name, "1AIE");
	buf_printf(name, "Ev");
	for (int i = 0; i < 600; i++)
		buf_printf(name, "RT_");
}

/* Tuples of which each holds the one before it twice, by back-reference. */
static void explode_rust(struct buf *name)
{
	size_t last = 4;

	buf_printf(name, "_RIC1aThhE");
	for (int i = 0; i < 50; i++) {
		size_t at = name->n - 2;

		buf_putc(name, 'T');
		for (int twice = 0; twice < 2; twice++) {
			buf_putc(name, 'B');
			put_number(name, last - 1, 62);
			buf_putc(name, '_');
		}
		buf_putc(name, 'E');
		last = at;
	}
	buf_putc(name, 'E');
}

/* A name of some hundred bytes that stands for petabytes is given up, in C++ as in Rust, and soon.
 */
TEST(names_that_explode_are_given_up)
{
	void (*const make[])(struct buf *) = {explode_cplus, explode_pack, explode_scopes,
					      explode_rust};
	int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (size_t i = 0; i < 4; i++) {
		struct buf name = BUF_NULL, out = BUF_NULL;

		make[i](&name);
		expect_eq(demangle(buf_str(&name), ANDIRON_DEMANGLE_FULL, &out), 0);
		expect_eq(out.n, 0);
		name.p[name.n - 1] = 'x';
		expect_eq(demangle(buf_str(&name), ANDIRON_DEMANGLE_FULL, &out), 0);
		buf_free(&name);
		buf_free(&out);
	}
	expect(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < NS_PER_SEC);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static const char *const seeds[] = {
	"_ZNSt6vectorIN3foo3barIiEESaIS2_EE17_M_realloc_insertIJRKS2_EEEvN9__gnu_cxx17__normal_"
	"iteratorIPS2_S4_EEDpOT_",
	"_ZZNK4llvm12function_refIFbRKNS_5TwineEEE11callback_fnIZNS_3optEvEUlS3_E_EEblS3_ENKUl"
	"vE_clEv",
	"_ZNKSt8functionIFvSt10shared_ptrIN5boost4asio6detail9schedulerEEEEclES5_",
	"_ZN1AIXsrSt7is_sameIT_T0_E5valueEE1fIJiLi3EdEEEDTcl1gspfp_EEDpOT_",
	"_RINvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newB6_E",
	"_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9r"
	"positionNCNgNpNbNgNkNuNqNyB9_6memchr7memrchrs_0E0Bb_",
	"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	"3bar17h930b740aa94f1d3aE",
};

/* Splices, repeats and changes single characters, mostly to others that mean something. */
static void mutate_name(char *name, size_t *n, size_t max, uint64_t *state)
{
	static const char grammar[] =
		"_0123456789EINSTXLJPRKDZBabcdefghijklmnopqrstuvwxyzACFGHMOQUVWY$.";

	for (uint64_t count = 1 + random_next(state) % 6; count; count--) {
		size_t at = random_next(state) % *n, length = random_next(state) % 24;

		if (random_next(state) % 3) {
			name[at] = grammar[random_next(state) % (sizeof(grammar) - 1)];
		} else if (at + length < *n && *n + length < max) {
			memmove(name + at + length, name + at, *n - at);
			*n += length;
		}
	}
}

static int64_t longest;

static void *fuzz(void *context)
{
	uint64_t state = 0x853c49e6748fea9b;
	struct buf out = BUF_NULL;
	char name[1500];

	for (int i = 0; i < *(int *)context; i++) {
		const char *seed = seeds[random_next(&state) % 8];
		size_t n = strlen(seed);
		int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), took;

		memcpy(name, seed, n);
		mutate_name(name, &n, sizeof(name), &state);
		for (uint32_t wish = 1; wish <= 3; wish++)
			expect(demangle((struct str){name, n}, wish, &out) >= 0);
		took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		longest = took > longest ? took : longest;
	}
	buf_free(&out);
	return NULL;
}

static void *nest(void *context)
{
	static const char *const units[] = {
		"P", "N",  "I", "Xpl",   "XplXng", "F",  "DT", "J",   "S_",   "1aI", "N1aI", "XcvA",
		"Z", "KP", "M", "XsrDt", "UlP",    "Ts", "T",  "INv", "NCNv", "YX",  "FK",   "Dp"};
	struct buf name = BUF_NULL, out = BUF_NULL;

	for (int rust = 0; rust < 2; rust++)
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			buf_clear(&name);
			buf_printf(&name, rust ? "_R" : "_Z1f");
			while (name.n < 4080)
				buf_printf(&name, "%s", units[i]);
			demangle(buf_str(&name), ANDIRON_DEMANGLE_FULL, &out);
			buf_putc(&name, 'i');
			demangle(buf_str(&name), ANDIRON_DEMANGLE_FULL, &out);
		}
	buf_free(&name);
	buf_free(&out);
	return context;
}

static void on_its_stack(void *(*fn)(void *), void *context)
{
	pthread_attr_t attr;
	pthread_t thread;

	expect_eq(pthread_attr_init(&attr), 0);
	expect_eq(pthread_attr_setstacksize(&attr, DEMANGLE_STACK_BYTES), 0);
	expect_eq(pthread_create(&thread, &attr, fn, context), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
}

/* The deepest nesting that the input limit allows fits the stack that the header asks for. */
TEST(deep_nesting_fits_the_stack)
{
	on_its_stack(nest, NULL);
}

/* No name crashes, leaks, or takes long. */
TEST(mutated_names_do_no_harm)
{
	const char *more = getenv("ANDIRON_FUZZ");
	int rounds = more ? (int)strtol(more, NULL, 10) : 20000;

	on_its_stack(fuzz, &rounds);
	printf("# longest: %lld us\n", (long long)longest / 1000);
	expect(longest < 2 * NS_PER_SEC);
}

static int demangle_all(void *context)
{
	struct buf out = BUF_NULL;
	int r = 0;

	for (size_t i = 0; i < 8 && r >= 0; i++)
		r = demangle(str_of(seeds[i]), ANDIRON_DEMANGLE_SIMPLIFIED, &out);
	buf_free(&out);
	return r < 0 ? r : 0;
}

TEST(demangling_survives_out_of_memory)
{
	test_each_failing_allocation(demangle_all, NULL);
}

static void clean_is(const char *name, size_t n, const char *expected)
{
	struct buf scratch = BUF_NULL;

	expect_str(sanitize_name((struct str){name, n}, &scratch), expected);
	buf_free(&scratch);
}

/* Nothing reaches a terminal or a page that either would obey. */
TEST(names_are_cleaned)
{
	clean_is("main", 4, "main");
	clean_is("caf\xc3\xa9", 5, "caf\xc3\xa9");
	clean_is("a\x1b[31mb", 7, "a\xef\xbf\xbd[31mb");
	clean_is("a\0b", 3,
		 "a\xef\xbf\xbd"
		 "b");
	clean_is("\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	clean_is("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	clean_is("\xed\xa0\x80x", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx");
	clean_is("a\xe2\x80\xae"
		 "b",
		 5,
		 "a\xef\xbf\xbd"
		 "b");
	clean_is("\xc2\x85", 2, "\xef\xbf\xbd");
	clean_is("x\xf0\x9f\x94", 4, "x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(long_names_are_cut_at_a_character)
{
	static char big[3 * SANITIZE_MAX_BYTES];
	struct buf scratch = BUF_NULL;
	struct str s;

	for (size_t i = 0; i + 1 < sizeof(big); i += 2)
		memcpy(big + i, "\xc3\xa9", 2);
	s = sanitize_name((struct str){big, sizeof(big)}, &scratch);
	expect(s.n <= SANITIZE_MAX_BYTES && s.n > SANITIZE_MAX_BYTES - 8);
	expect(str_utf8(s));
	expect(str_ends(s, STR("\xc3\xa9\xe2\x80\xa6")));
	buf_free(&scratch);
}

/* Whatever goes in, valid UTF-8 within the limit comes out. */
TEST(any_bytes_become_utf8)
{
	uint64_t state = 0x1234567;
	struct buf scratch = BUF_NULL;
	char bytes[64];

	for (int i = 0; i < 20000; i++) {
		struct str s;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)random_next(&state);
		s = sanitize_name((struct str){bytes, random_next(&state) % 64}, &scratch);
		expect(str_utf8(s));
	}
	buf_free(&scratch);
}

static void compiled_is(const char *told, const char *name, const char *file)
{
	struct str found = STR("");
	struct buf out = BUF_NULL;
	int r = jit_name(str_of(told), &out, &found);

	expect_eq(r, *name != 0);
	expect_str(buf_str(&out), name);
	expect_str(found, file);
	buf_free(&out);
}

/* What runtimes tell is shown in one form for each language; what is in none is left as it is. */
TEST(names_of_runtimes_have_their_languages_form)
{
	compiled_is("py::inner:/app/a.py", "/app/a.py:inner", "/app/a.py");
	compiled_is("py::A.f.<locals>.<lambda>:<frozen x>", "<frozen x>:A.f.<locals>.<lambda>",
		    "<frozen x>");
	compiled_is("int org.foo.Bar.baz(long, java.lang.String)", "org.foo.Bar.baz", "");
	compiled_is("void Spin.main(java.lang.String[])", "Spin.main", "");
	compiled_is("java.lang.Object java.util.HashMap.get(java.lang.Object)",
		    "java.util.HashMap.get", "");
	compiled_is("py::", "", "");
	compiled_is("py::inner:", "", "");
	compiled_is("py:::x", "", "");
	compiled_is("JS:*outer /tmp/a.js:3:10", "", "");
	compiled_is("StubRoutines (1)", "", "");
	compiled_is("vtable stub", "", "");
	compiled_is("Interpreter", "", "");
	compiled_is("f(x)", "", "");
	compiled_is("", "", "");
	compiled_is("(", "", "");
	compiled_is(" ()", "", "");
}
