//! Fibers that run in turn.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use corosensei::stack::StackPointer;
use corosensei::{Coroutine, CoroutineResult};
use warmq_color::Stack;
use warmq_color::coloring::Coloring;

/// The most lines of its frame that a fiber touches.
pub const MOST_LINES: usize = 8;

const LINE: usize = 64;

/// The shortest time between two readings of the clock, in switches.
const TOGETHER: usize = 4_096;

/// A plain stack whose top has a color.
struct Placed {
    stack: Stack,
    down: usize,
}

// SAFETY: a stack is one for corosensei (`warmq-color`), and is with a top further down, too: a
// multiple of a line, at least 4 KB above the guard page (`Placed::new`).
unsafe impl corosensei::stack::Stack for Placed {
    fn base(&self) -> StackPointer {
        let top = self.stack.top().get() - self.down;
        StackPointer::new(top).expect("above the lowest address")
    }

    fn limit(&self) -> StackPointer {
        self.stack.low()
    }
}

impl Placed {
    /// # Panics
    /// When the color leaves less than 4 KB.
    fn new(stack: Stack, coloring: Coloring) -> Placed {
        let down = coloring.offset(stack.index() as u64) as usize;
        assert!(stack.usable() >= down + 4096 && down.is_multiple_of(LINE));
        Placed { stack, down }
    }
}

/// What a fiber is resumed with: whether it goes on.
type Fiber = Coroutine<bool, (), (), Placed>;

/// Fibers that run one after the other, again and again.
///
/// Invariant: there is at least one, and each is suspended.
pub struct Ring {
    tops: Vec<u64>,
    fibers: Vec<Fiber>,
}

impl Ring {
    /// A fiber on each of `stacks`, which are plain, with its color of `coloring`; they run in this
    /// order. Each touches `lines` lines of its frame between two yields.
    pub fn new(stacks: Vec<Stack>, coloring: Coloring, lines: usize) -> Ring {
        let placed = stacks.into_iter().map(|stack| Placed::new(stack, coloring));
        let placed: Vec<Placed> = placed.collect();
        let top = |placed: &Placed| (placed.stack.top().get() - placed.down) as u64;
        let tops = placed.iter().map(top).collect();
        let fibers = placed.into_iter().map(|placed| fiber(placed, lines));
        let mut ring = Ring {
            tops,
            fibers: fibers.collect(),
        };
        ring.round();
        ring
    }

    /// The tops of the stacks, in the order in which the fibers run.
    pub fn tops(&self) -> &[u64] {
        &self.tops
    }

    /// Ends all fibers, and gives their stacks back in the same order.
    pub fn into_stacks(self) -> Vec<Stack> {
        let ended = self.fibers.into_iter().map(|mut fiber| {
            while let CoroutineResult::Yield(()) = fiber.resume(false) {}
            fiber.into_stack().stack
        });
        ended.collect()
    }

    /// Lets every fiber run once.
    fn round(&mut self) {
        for fiber in &mut self.fibers {
            match fiber.resume(true) {
                CoroutineResult::Yield(()) => {}
                CoroutineResult::Return(()) => unreachable!("fibers go on until they are ended"),
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
        let together = TOGETHER.div_ceil(self.fibers.len());
        while best.is_infinite() || began.elapsed() < least {
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
fn fiber(placed: Placed, lines: usize) -> Fiber {
    Coroutine::with_stack(placed, move |yielder, mut goes_on| {
        let mut frame = [0_u8; MOST_LINES * LINE];
        while goes_on {
            for line in 0..lines.min(MOST_LINES) {
                let byte = &mut frame[MOST_LINES * LINE - 1 - line * LINE];
                *byte = std::hint::black_box(*byte).wrapping_add(1);
            }
            std::hint::black_box(&mut frame);
            goes_on = yielder.suspend(());
        }
    })
}
