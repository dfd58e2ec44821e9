//! The same answers where there is one CPU, and nobody to share a line with.
//!
//! Whether level 2 has a line is nothing that a host predicts, unless it nearly always has it. So
//! what both cases have in common is done without asking, where level 2 has missed often of late.

use super::private::Miss;
use super::{Hierarchy, Outcome, Request, Served, Ways};
use crate::cache::{LineState, Taken};
use warmq_units::Duration;

/// What serves an access that level 2 has, and one that it misses.
static SERVED: [Served; 2] = [Served::Level(2), Served::Memory];

/// The code for machines of one CPU.
pub(super) struct Alone {
    /// Where level 2 seldom misses, and where it often does.
    pub(super) code: [Miss; 2],
    /// Accesses to level 2 and misses there when the choice was made.
    pub(super) seen: [u64; 2],
}

/// The choice is looked at again every so many misses in level 2; accesses, where it often misses.
const INTERVAL: u64 = 256;

/// Where fewer miss than one of so many, a host foresees that they hit.
const SELDOM: u64 = 8;

impl Hierarchy {
    /// Chooses the code by how often level 2 has missed since the last choice, at the end of an
    /// interval: when `counted` says so.
    #[inline(always)]
    pub(super) fn choose_code(&mut self, counted: u64) {
        if counted.is_multiple_of(INTERVAL) {
            self.choose_code_now();
        }
    }

    #[inline(never)]
    fn choose_code_now(&mut self) {
        let Some(alone) = &mut self.alone else { return };
        let far = self.counts.total(2);
        let now = [far.accesses(), far.misses()];
        // Counts may have begun anew.
        let [accesses, misses] = [0, 1].map(|at| now[at].saturating_sub(alone.seen[at]));
        self.miss = alone.code[usize::from(misses * SELDOM >= accesses)];
        alone.seen = now;
    }
}

impl<const NEAR: usize, const FAR: usize> Ways<NEAR, FAR> {
    pub(super) fn miss_unforeseen(caches: &mut Hierarchy, request: Request) -> Outcome {
        let Request { line, access, .. } = request;
        let lane = &caches.lanes[0];
        let far = caches.caches.lru::<FAR>(lane.far_extent);
        let (missed, left) = far.use_or_insert(line, LineState::Exclusive);
        let counts = &mut caches.counts;
        let counted = counts.note_miss_alone(missed, access, request.address);
        let fetched = caches
            .links
            .memory_answers_if(missed, request.now, &mut counts.bus);
        let outcome = Outcome {
            takes: Duration(lane.latency.0 & !missed | fetched.0),
            served: SERVED[missed as usize & 1],
        };
        if let Some(victim) = lane.matters(left, line) {
            Self::left_far_alone(caches, request, victim);
        }
        let near = caches.caches.lru::<NEAR>(caches.lanes[0].near_extent);
        let state = [LineState::Exclusive, LineState::Modified][access as usize];
        if let Some(victim) = near.insert_for_modified(line, state) {
            Self::left_near_alone(caches, request, victim);
        }
        caches.choose_code(counted);
        outcome
    }

    // Apart, so that what is done each time has the registers.

    #[inline(never)]
    fn left_far_alone(caches: &mut Hierarchy, request: Request, victim: Taken) {
        Self::left_far(caches, request, caches.lanes[0], victim);
    }

    #[inline(never)]
    fn left_near_alone(caches: &mut Hierarchy, request: Request, victim: Taken) {
        Self::left_near(caches, request, caches.lanes[0], victim);
    }
}
