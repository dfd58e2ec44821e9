//! Steps that look at the clock, and what a task sets of itself.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use warmq_scenario::program::{Draws, Timer, To};
use warmq_scenario::{Quantity, Set};

use super::birth::{CPUS, GROUP, POLICY};
use super::{Left, PS_PER_NS, Performer};
use crate::error::PlayError;
use crate::specs::{UCLAMP, attributes_of, group_number};
use crate::speed::spin;
use crate::stage::slots::Mark;
use crate::sys::clock::now_ns;
use crate::sys::sched::{self, Attributes};

/// For how long `spin` computes before it reads the clock again, in picoseconds.
const PIECE: u64 = 2_000_000;

/// When a timer expires, and what it is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry {
    /// When it was due.
    due: u64,
    /// The task sleeps until then; none: it comes too late and does not sleep.
    sleep_until: Option<u64>,
    /// When the timer has expired last, for whom uses it next.
    last: u64,
}

/// The expiry of a timer that expired last at `last` and is used at `now`. All are times of one
/// clock in the same unit.
fn expiry(last: u64, period: u64, now: u64, absolute: bool) -> Expiry {
    let next = last.saturating_add(period);
    match now >= next {
        true => Expiry {
            due: next,
            sleep_until: None,
            last: if absolute { next } else { now },
        },
        // A shared timer is moved before this task sleeps: the next user waits one period longer.
        false => Expiry {
            due: next,
            sleep_until: Some(next),
            last: next,
        },
    }
}

impl Performer {
    /// Computes until `span` has passed since now.
    pub(super) fn spin(&mut self, span: &Draws) -> Result<(), Left> {
        let begin = now_ns();
        let end = begin.saturating_add(self.draw(span)? / PS_PER_NS);
        let mut now = begin;
        while now < end {
            let left = (end - now).saturating_mul(PS_PER_NS).min(PIECE);
            spin(self.stage.speed.loops(left, Quantity::Time));
            now = now_ns();
        }
        Ok(())
    }

    /// Sleeps until a timer expires.
    pub(super) fn wait_for(&mut self, timer: &Timer) -> Result<(), Left> {
        let place = self.place(&timer.timer)?;
        let period = self.draw(&timer.period)? / PS_PER_NS;
        let (began, absolute) = (self.began, timer.absolute);
        // Zero: it has not expired yet.
        let used = |last: u64| {
            let last = if last == 0 { began } else { last };
            expiry(last, period, now_ns(), absolute)
        };
        let expiry = match timer.own {
            Some(own) => {
                let last = &mut self.timers[own][timer.timer.in_table(place)];
                let expiry = used(*last);
                *last = expiry.last;
                expiry
            }
            None => {
                let last = self.objects.timers[place];
                let mut seen = last.load(Acquire);
                loop {
                    let expiry = used(seen);
                    match last.compare_exchange_weak(seen, expiry.last, AcqRel, Acquire) {
                        Ok(_) => break expiry,
                        Err(newer) => seen = newer,
                    }
                }
            }
        };
        self.due = expiry.due;
        if let Some(until) = expiry.sleep_until {
            self.sleep_until(until);
        }
        Ok(())
    }

    /// Sets CPUs, policy, slice, group or nice value of this task, and logs it.
    pub(super) fn set_own(&mut self, set: &Set) -> Result<(), Left> {
        let (bound, cpus) = (&self.stage.bound, &self.stage.cpus);
        match bound.to(set, cpus, &self.loops.indexes)? {
            To::Cpus(allowed) => {
                let set = sched::set_affinity(0, &allowed);
                set.map_err(|error| self.refused(&format!("`cpus` ({allowed})"), &error, CPUS))?;
                let words = cpus.all().iter().last().map_or(0, word_of);
                (0..=words).for_each(|word| {
                    self.tell(Mark::Affinity, word as u32, allowed.word(word));
                });
            }
            To::Policy(policy) => {
                let wanted = attributes_of(&policy);
                self.change_attributes(|now| now.take_policy_of(&wanted))?;
                self.tell(Mark::Policy, wanted.policy as u32, wanted.priority.into());
            }
            To::Slice(slice) => {
                self.slot.slice_ns.store(slice.as_ns(), Relaxed);
                self.change_attributes(|_| ())?;
                self.tell(Mark::Slice, 0, slice.as_ns());
            }
            To::UclampMin(min) => self.set_uclamp(Some(min), None)?,
            To::UclampMax(max) => self.set_uclamp(None, Some(max))?,
            To::Group(place) => {
                let group = group_number(place);
                let joined = self.stage.groups.join(group);
                joined.map_err(|error| self.refused("its group", &error, GROUP))?;
                self.tell(Mark::Group, group, 0);
            }
            To::Nice(nice) => self.set_nice_value(nice)?,
            // No step sets anything else.
            _ => {}
        }
        Ok(())
    }

    /// Changes how this task is scheduled, keeping the rest.
    fn change_attributes(&self, change: impl FnOnce(&mut Attributes)) -> Result<(), PlayError> {
        let set = self.slot.change_attributes(0, change);
        set.map_err(|error| self.refused("policy, nice value and slice", &error, POLICY))
    }

    /// Clamps what utilization this task counts as, as far as bounds are given.
    pub(super) fn set_uclamp(&self, min: Option<u16>, max: Option<u16>) -> Result<(), PlayError> {
        let set = sched::set_uclamp(0, min, max);
        set.map_err(|error| self.refused("uclamp_min and uclamp_max", &error, UCLAMP))
    }

    pub(super) fn set_nice_value(&self, nice: i8) -> Result<(), PlayError> {
        let set = sched::set_nice(0, nice);
        set.map_err(|error| self.refused(&format!("the nice value {nice}"), &error, POLICY))?;
        self.tell(Mark::Nice, 0, i64::from(nice) as u64);
        Ok(())
    }
}

/// The word of 64 CPUs that `cpu` is in.
fn word_of(cpu: warmq_units::CpuId) -> usize {
    cpu.index() / 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_timer_is_as_rt_app_has_it() {
        let sleeps = |until| Expiry {
            due: until,
            sleep_until: Some(until),
            last: until,
        };
        let late = |due, last| Expiry {
            due,
            sleep_until: None,
            last,
        };
        for absolute in [false, true] {
            assert_eq!(expiry(100, 50, 120, absolute), sleeps(150));
            assert_eq!(expiry(100, 50, 90, absolute), sleeps(150));
        }
        assert_eq!(expiry(100, 50, 170, false), late(150, 170));
        assert_eq!(expiry(100, 50, 170, true), late(150, 150));
        assert_eq!(expiry(100, 0, 100, false), late(100, 100));
    }

    proptest! {
        /// Whatever the task does in between, an absolute timer expires each period once.
        #[test]
        fn an_absolute_timer_never_drifts(period in 1_u64..1000, works in prop::collection::vec(0_u64..3000, 1..50)) {
            let (mut last, mut now) = (7, 7);
            for (number, work) in (1..).zip(works) {
                now += work;
                let expiry = expiry(last, period, now, true);
                now = now.max(expiry.sleep_until.unwrap_or(0));
                last = expiry.last;
                prop_assert_eq!(last, 7 + number * period);
                prop_assert!(now >= last);
            }
        }

        /// A relative timer lets at least a period pass between two uses.
        #[test]
        fn a_relative_timer_is_never_early(period in 1_u64..1000, works in prop::collection::vec(0_u64..3000, 1..50)) {
            let (mut last, mut now) = (7, 7);
            for work in works {
                let before = now;
                now += work;
                let expiry = expiry(last, period, now, false);
                now = now.max(expiry.sleep_until.unwrap_or(0));
                last = expiry.last;
                prop_assert_eq!(last, now);
                prop_assert!(now - before >= period);
            }
        }
    }
}
