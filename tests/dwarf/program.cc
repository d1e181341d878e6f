// SPDX-License-Identifier: Apache-2.0
// What makes debug information hard: templates, lambdas, deep inlining, exceptions, cold parts.
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef PART
#define PART 0
#endif
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

namespace JOIN(part, PART) {

template <int K> struct table {
	std::map<std::string, std::vector<double>> values;
	std::unordered_map<int, std::set<std::string>> index;

	static inline double weigh(double x) { return x * K + 1; }

	double sum(int n)
	{
		double s = 0;
		for (int i = 0; i < n; i++) {
			auto &v = values[std::to_string(i % 17)];
			v.push_back(weigh(i));
			index[i].insert(std::to_string(K));
			std::sort(v.begin(), v.end(), [](double a, double b) { return weigh(a) > weigh(b); });
			s += std::accumulate(v.begin(), v.end(), 0.0,
					     [](double a, double b) { return a + weigh(b); });
			if (s < 0)
				throw std::runtime_error("negative " + std::to_string(i));
		}
		return s;
	}
};

template <int K> double all(int n)
{
	table<K> t;
	double s = t.sum(n);
	if constexpr (K > 0)
		s += all<K - 1>(n);
	return s;
}

static int matches(const std::string &s)
{
	std::regex expression("([a-z]+)([0-9]*)" + s);
	std::smatch found;
	std::string text = "abc123" + s;
	return std::regex_search(text, found, expression) ? static_cast<int>(found[1].length()) : 0;
}

double run(int n) { return all<2>(n) + matches("x"); }

} // namespace

#if PART == 0
namespace part1 { double run(int n); }

int main(int argc, char **)
{
	std::cout << part0::run(argc * 10) + part1::run(argc * 10) << "\n";
	return 0;
}
#endif
