// SPDX-License-Identifier: MIT OR Apache-2.0
//
// warmq_color.hpp: colored stacks with guard pages for Boost.Context, and so for Boost.Fiber and
// Boost.Coroutine2. Needs warmq_color.h beside it, C++11, POSIX.
//
//     warmq::colored_stack stacks(64 * 1024);
//     boost::context::fiber f(std::allocator_arg, stacks, [](boost::context::fiber &&c) { ... });
//
// Boost rounds the top down to a multiple of 256 bytes, so that of 32 colors 8 places remain.
//
// Copies share their stacks, from any thread. Stacks return to the allocator, and to the system
// when its last copy and all fibers are gone.
#ifndef WARMQ_COLOR_HPP
#define WARMQ_COLOR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/stack_context.hpp>
#include <boost/context/stack_traits.hpp>

#include "warmq_color.h"

namespace warmq {

class colored_stack {
public:
	using traits_type = boost::context::stack_traits;

	// Stacks of `size` bytes, rounded up to pages, of which the color takes less than one. `colors`
	// is a power of two, at most a page full of lines (64 of 64 bytes); 1 is no coloring. With 32,
	// frames of up to half a page end in the page that they begin in.
	explicit colored_stack(std::size_t size = traits_type::default_size(), std::uint64_t colors = 32)
	    : shared_(std::make_shared<shared>(size, colors))
	{
	}

	boost::context::stack_context allocate()
	{
		boost::context::stack_context stack;

		stack.sp = shared_->take();
		// As with Boost's protected_fixedsize: the guard page counts.
		stack.size = shared_->length - shared_->below_end(stack.sp);
		return stack;
	}

	void deallocate(boost::context::stack_context &stack) noexcept
	{
		shared_->give_back(stack.sp);
	}

private:
	static constexpr std::uint64_t line = 64;

	// Invariant: `tops` has the top of every stack that nobody uses, with room for all `made`.
	struct shared {
		std::mutex lock;
		std::vector<void *> tops;
		std::uint64_t made = 0;
		std::size_t page, length;
		std::uint64_t colors;

		shared(std::size_t size, std::uint64_t asked)
		    : page(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)))
		    , length((size + page - 1) / page * page + page)
		    , colors(1)
		{
			while (colors * 2 <= asked && colors * 2 * line <= page)
				colors *= 2;
			// A page of stack beside the guard page, whatever the color takes.
			if (length < 3 * page)
				length = 3 * page;
		}

		shared(const shared &) = delete;
		shared &operator=(const shared &) = delete;

		~shared()
		{
			for (void *top : tops)
				munmap(static_cast<char *>(top) + below_end(top) - length, length);
		}

		// How far a top lies below the end of its mapping: less than a page.
		std::size_t below_end(void *top) const
		{
			return (page - reinterpret_cast<std::uintptr_t>(top) % page) % page;
		}

		void *take()
		{
			std::lock_guard<std::mutex> held(lock);

			if (!tops.empty()) {
				void *top = tops.back();

				tops.pop_back();
				return top;
			}
			tops.reserve(made + 1);
			void *low = mmap(nullptr, length, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (low == MAP_FAILED)
				throw std::bad_alloc();
			if (mprotect(low, page, PROT_NONE) != 0) {
				munmap(low, length);
				throw std::bad_alloc();
			}
			return static_cast<char *>(low) + length - warmq_color_offset(made++, colors, line);
		}

		void give_back(void *top) noexcept
		{
			std::lock_guard<std::mutex> held(lock);

			tops.push_back(top);
		}
	};

	std::shared_ptr<shared> shared_;
};

} // namespace warmq
#endif
