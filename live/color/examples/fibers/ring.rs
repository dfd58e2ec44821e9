//! Fibers that yield in turn.

use std::time::{Duration, Instant};

use corosensei::{Coroutine, CoroutineResult};
use warmq_color::coloring::{Cache, Spread};
use warmq_color::{Pool, Stack};

const LINE: usize = 64;

type Fiber = Coroutine<(), (), (), Stack>;

/// Fibers that run one after the other, again and again, in the order of `fibers`.
pub struct Ring {
    tops: Vec<u64>,
    fibers: Vec<Fiber>,
}

impl Ring {
    /// `count` fibers on stacks of `pool`, each of which touches `lines` lines of its frame between
    /// two yields. The order in which they run is not that of their stacks, as with fibers that
    /// wait for events: a stream of prefetches would hide the misses.
    pub fn new(pool: &Pool, count: usize, lines: usize) -> Result<Ring, String> {
        let mut fibers = Vec::with_capacity(count);
        let mut tops = Vec::with_capacity(count);
        for _ in 0..count {
            let stack = pool.stack().map_err(|error| error.to_string())?;
            tops.push(stack.top().get() as u64);
            fibers.push(fiber(stack, lines));
        }
        shuffle(&mut fibers);
        Ok(Ring { tops, fibers })
    }

    /// The share of the `hot` upper lines of all stacks that miss in `cache` at every visit in
    /// turn, if its index is not hashed and chosen by the virtual address: true of level 1.
    pub fn predicted_misses(&self, cache: Cache, hot: u64) -> f64 {
        let of_a_stack = |top: &u64| {
            let top = *top;
            (1..=hot).map(move |line| top - line * cache.line())
        };
        let spread = Spread::of(cache, self.tops.iter().flat_map(of_a_stack));
        spread.misses_in_turn() as f64 / (self.tops.len() as u64 * hot) as f64
    }

    /// Lets every fiber run once.
    fn round(&mut self) {
        for fiber in &mut self.fibers {
            match fiber.resume(()) {
                CoroutineResult::Yield(()) => {}
                CoroutineResult::Return(()) => unreachable!("fibers go on until they are dropped"),
            }
        }
    }

    /// The ns that a switch into a fiber and out of it takes, in the fastest of rounds that take
    /// `least` together: what others do on this machine only makes a round slower.
    pub fn ns_per_switch(&mut self, least: Duration) -> f64 {
        // What ran in between has other lines in the caches.
        self.round();
        self.round();
        let began = Instant::now();
        let mut best = f64::INFINITY;
        // Short rounds are timed together, so that reading the clock takes no part of it.
        let together = 4_096_usize.div_ceil(self.fibers.len());
        while began.elapsed() < least {
            let start = Instant::now();
            for _ in 0..together {
                self.round();
            }
            let switches = (together * self.fibers.len()) as f64;
            best = best.min(start.elapsed().as_nanos() as f64 / switches);
        }
        best
    }
}

/// Lines of the frame are touched from its upper end on, next to what the switch itself touches.
fn fiber(stack: Stack, lines: usize) -> Fiber {
    Coroutine::with_stack(stack, move |yielder, ()| {
        let mut frame = [0_u8; 8 * LINE];
        loop {
            for line in 0..lines.min(8) {
                let byte = &mut frame[8 * LINE - 1 - line * LINE];
                *byte = std::hint::black_box(*byte).wrapping_add(1);
            }
            std::hint::black_box(&mut frame);
            yielder.suspend(());
        }
    })
}

/// The same order in every run: a fixed linear congruential generator (Knuth's MMIX).
fn shuffle(fibers: &mut [Fiber]) {
    let mut state = 1_u64;
    for index in (1..fibers.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        fibers.swap(index, (state >> 33) as usize % (index + 1));
    }
}
