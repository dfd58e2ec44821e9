// Fibers of Boost.Context on colored stacks: where their tops lie, and that stacks are used again.
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

#include <boost/context/fiber.hpp>

#include "warmq_color.hpp"

namespace context = boost::context;

int main()
{
	warmq::colored_stack stacks(32 * 1024, 64);
	std::set<std::uintptr_t> lines;
	std::set<void *> tops;
	int ran = 0;

	for (int round = 0; round < 2; round++) {
		std::vector<context::fiber> fibers;

		for (int index = 0; index < 128; index++) {
			fibers.emplace_back(std::allocator_arg, stacks, [&](context::fiber &&caller) {
				char here[64];

				lines.insert(reinterpret_cast<std::uintptr_t>(here) % 4096 / 64);
				ran++;
				caller = std::move(caller).resume();
				ran++;
				return std::move(caller);
			});
			fibers.back() = std::move(fibers.back()).resume();
		}
		for (auto &fiber : fibers)
			fiber = std::move(fiber).resume();
	}
	for (int index = 0; index < 128; index++)
		tops.insert(stacks.allocate().sp);
	std::printf("%d %zu %zu\n", ran, lines.size(), tops.size());
	// Boost puts its record of a fiber at a multiple of 256 bytes: 16 places a page.
	// More than fits into memory is refused.
	try {
		warmq::colored_stack(std::size_t(1) << 60).allocate();
		return 1;
	} catch (const std::bad_alloc &) {
	}
	return ran == 512 && lines.size() == 16 && tops.size() == 128 ? 0 : 1;
}
