// Fibers of Boost.Fiber under its own scheduler, which let each other run: ns a switch.
//
//     c++ -O2 -I include -o yields benches/yields.cc -lboost_fiber -lboost_context
//     ./yields FIBERS COLORS
//
// 0 colors: Boost's own stacks with guard pages.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/fiber/all.hpp>

#include "warmq_color.hpp"

namespace fibers = boost::fibers;

static constexpr std::size_t size = 64 << 10;

// Each fiber counts its turns; the first one measures, in rounds of which the fastest counts.
template <typename Stacks> static double ns_per_switch(Stacks stacks, int count)
{
	using clock = std::chrono::steady_clock;
	std::vector<fibers::fiber> all;
	bool over = false;
	double best = 1e18;

	for (int index = 1; index < count; index++)
		all.emplace_back(std::allocator_arg, stacks, [&over] {
			volatile char frame[128] = {};

			while (!over) {
				frame[0]++;
				frame[64]++;
				boost::this_fiber::yield();
			}
		});
	int together = 1 + 4096 / count;
	auto end = clock::now() + std::chrono::milliseconds(400);

	while (clock::now() < end) {
		auto began = clock::now();

		for (int round = 0; round < together; round++)
			boost::this_fiber::yield();
		std::chrono::duration<double, std::nano> took = clock::now() - began;
		best = std::min(best, took.count() / together / count);
	}
	over = true;
	for (auto &fiber : all)
		fiber.join();
	return best;
}

int main(int words, char **word)
{
	int count = words > 2 ? std::atoi(word[1]) : 0, colors = words > 2 ? std::atoi(word[2]) : -1;

	if (count < 2 || count > 15000 || colors < 0 || colors > 64) {
		std::fprintf(stderr, "yields FIBERS COLORS: 2 to 15000 fibers, 0 to 64 colors\n");
		return 1;
	}
	double ns = colors ? ns_per_switch(warmq::colored_stack(size, colors), count) :
			     ns_per_switch(boost::context::protected_fixedsize_stack(size), count);
	std::printf("%.2f\n", ns);
	return 0;
}
