//! Steps that take and release spin locks.

use warmq_scenario::program::{InVain, TakeSpinlock, Which, longer};
use warmq_trace::Cause;

use super::{Left, PS_PER_NS, Performer};
use crate::speed;
use crate::stage::objects::SpinlockSet;
use crate::sys::clock::sleep_ns;
use crate::sys::sched;

/// A spin lock that is being taken.
struct Taking<'s> {
    step: &'s TakeSpinlock,
    set: &'static SpinlockSet,
    /// The place of the set.
    place: usize,
    /// Looks in vain.
    looks: u64,
    contended: bool,
}

impl Performer {
    /// Takes a spin lock as its table says, and counts what that took.
    pub(super) fn take_spinlock(&mut self, step: &TakeSpinlock) -> Result<(), Left> {
        let place = self.place(&step.lock)?;
        let set = &self.objects.spinlocks[place];
        let mut taking = Taking {
            step,
            set,
            place,
            looks: 0,
            contended: false,
        };
        match set.spinning.per_cpu {
            true => self.take_here(&mut taking),
            false => self.look(0, &mut taking),
        }
        let counted = [
            (step.counters.taken, 1),
            (step.counters.contended, taking.contended.into()),
            (step.counters.spun, set.spinning.spun_ns(taking.looks)),
        ];
        for (counter, by) in counted {
            self.stage.slots.count(self.index, counter.0 as usize, by);
        }
        Ok(())
    }

    /// Takes the lock of the CPU that this task runs on, and remembers which it was.
    fn take_here(&mut self, taking: &mut Taking<'_>) {
        let locks = taking.set.locks;
        loop {
            let cpu = sched::cpu();
            let number = cpu.index() % locks.len();
            self.look(number, taking);
            if sched::cpu() == cpu {
                return self.holds.push((taking.place, number));
            }
            locks[number].release();
        }
    }

    /// Looks at lock `number` of the set until it is taken.
    fn look(&mut self, number: usize, taking: &mut Taking<'_>) {
        let (set, lock) = (taking.set, &taking.set.locks[number]);
        let mut slept = None;
        loop {
            let (taken, looks) = lock.look(set.spinning.spins, || speed::spin(set.rounds));
            taking.looks = taking.looks.saturating_add(looks);
            taking.contended |= looks > 0 || !taken;
            if taken {
                return;
            }
            match set.spinning.then {
                InVain::Yield => std::thread::yield_now(),
                InVain::Sleep { delay, most } => {
                    let span = slept.map_or(delay, |before| {
                        self.streams.with(taking.step.stream, |stream| {
                            longer(before, (delay, most), |bound| stream.below(bound))
                        })
                    });
                    slept = Some(span);
                    self.waiting(Cause::Timer, None, || sleep_ns(span / PS_PER_NS));
                }
                InVain::Futex => {
                    let of = Some((&taking.step.lock, taking.place));
                    return self.waiting(Cause::Spinlock, of, || lock.sleep());
                }
            }
        }
    }

    /// Releases a spin lock; of those of the CPUs the one that this task took last.
    pub(super) fn release_spinlock(&mut self, lock: &Which) -> Result<(), Left> {
        let place = self.place(lock)?;
        let held = self.holds.iter().rposition(|(held, _)| *held == place);
        let number = held.map_or(0, |held| self.holds.swap_remove(held).1);
        self.objects.spinlocks[place].locks[number].release();
        Ok(())
    }
}
