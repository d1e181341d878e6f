// SPDX-License-Identifier: Apache-2.0
/*
 * C++: exceptions that cross many frames with destructors on the way, work within the unwinder and
 * within handlers, and the deep inlined calls of the standard library.
 */
#include "burn.h"

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

struct keeper {
	std::string text;
	explicit keeper(int n) : text(static_cast<size_t>(40 + n), 'x') {}
	~keeper() { burn_result = burn_result + text.size(); }
};

static volatile int left;

static NOINLINE void dive(const std::function<void()> &at_the_end)
{
	keeper k(left);

	if (left == 0) {
		at_the_end();
		return;
	}
	left = left - 1;
	dive(at_the_end);
}

static NOINLINE void throwing()
{
	left = 120;
	try {
		dive([] {
			burn(5000);
			throw std::runtime_error("to the top");
		});
	} catch (const std::exception &e) {
		burn(5000);
		burn_result = burn_result + static_cast<unsigned long>(e.what()[0]);
	}
}

static NOINLINE void sorting()
{
	std::map<int, std::string> names;
	std::vector<int> numbers(2000);
	unsigned int x = 1;

	for (int &n : numbers)
		n = static_cast<int>((x = x * 1664525u + 1013904223u) >> 8);
	std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return (a ^ 0x55) < (b ^ 0x55); });
	for (int n : numbers)
		names[n & 255] += "name";
	burn_result = burn_result + names.size();
	if (std::regex_search(names[3], std::regex("(na|me)*(name)+x?")))
		burn_result = burn_result + 1;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning()) {
		throwing();
		sorting();
	}
	return 0;
}
