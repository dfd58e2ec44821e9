// Fibers of Boost.Context that run in turn, on Boost's own stacks with guard pages and on colored
// ones in alternation: ns a switch.
//
//     c++ -O2 -I include -o fibers benches/fibers.cc -lboost_context && ./fibers [FIBERS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include "warmq_color.hpp"

namespace context = boost::context;

using fibers = std::vector<context::fiber>;

template <typename Stacks> static fibers start(Stacks stacks, int count)
{
	fibers all;

	for (int index = 0; index < count; index++) {
		all.emplace_back(std::allocator_arg, stacks, [](context::fiber &&caller) {
			volatile char frame[128] = {};

			for (;;) {
				frame[0]++;
				frame[64]++;
				caller = std::move(caller).resume();
			}
			return std::move(caller);
		});
	}
	// Always the same order, which is not that of the stacks.
	std::shuffle(all.begin(), all.end(), std::mt19937(1));
	return all;
}

// The fastest of the rounds of 12 ms.
static double ns_per_switch(fibers &all)
{
	using clock = std::chrono::steady_clock;
	auto end = clock::now() + std::chrono::milliseconds(12);
	double best = 1e18;
	int together = 1 + 4096 / static_cast<int>(all.size());

	while (clock::now() < end) {
		auto began = clock::now();

		for (int round = 0; round < together; round++)
			for (auto &fiber : all)
				fiber = std::move(fiber).resume();
		std::chrono::duration<double, std::nano> took = clock::now() - began;
		best = std::min(best, took.count() / together / static_cast<double>(all.size()));
	}
	return best;
}

int main(int words, char **word)
{
	int count = words > 1 ? std::atoi(word[1]) : 256;

	if (count < 1 || count > 15000) {
		std::fprintf(stderr, "fibers [FIBERS]: from 1 to 15000\n");
		return 1;
	}
	std::vector<double> plain, colored, ratios;

	for (int round = 0; round < 15; round++) {
		fibers one = start(context::protected_fixedsize_stack(64 << 10), count);
		fibers other = start(warmq::colored_stack(64 << 10), count);
		double best[] = { 1e18, 1e18 };

		for (int turn = 0; turn < 8; turn++) {
			best[0] = std::min(best[0], ns_per_switch(one));
			best[1] = std::min(best[1], ns_per_switch(other));
		}
		plain.push_back(best[0]);
		colored.push_back(best[1]);
		ratios.push_back(best[0] / best[1]);
	}
	for (auto *values : { &plain, &colored, &ratios })
		std::sort(values->begin(), values->end());
	std::printf("%d fibers: %.1f ns, colored %.1f ns, ratio %.2f (%.2f to %.2f)\n", count, plain[7],
		    colored[7], ratios[7], ratios[3], ratios[11]);
	return 0;
}
