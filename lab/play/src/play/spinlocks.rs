//! Steps that take and release spin locks.

use warmq_kernel::Spinlock;
use warmq_scenario::program::{InVain, Spinning, TakeSpinlock, Which, longer};
use warmq_units::Duration;

use super::player::{Left, Player};

/// Spin locks that steps name as one: one, or one for each CPU.
pub(super) struct SpinlockSet {
    pub(super) locks: Vec<Spinlock>,
    pub(super) spinning: Spinning,
}

/// What taking a lock took.
#[derive(Default)]
struct Took {
    looks: u64,
    contended: bool,
}

impl Player {
    /// Takes a spin lock as its table says, and counts what that took.
    pub(super) async fn take_spinlock(&mut self, step: &TakeSpinlock) -> Result<(), Left> {
        let (stage, place) = (self.stage.clone(), self.place(&step.lock)?);
        let set = &stage.objects.spinlocks[place];
        let mut took = Took::default();
        let taken = loop {
            let cpu = self.task.cpu().await;
            let lock = set.locks[cpu.index() % set.locks.len()];
            self.look(lock, &set.spinning, step, &mut took).await;
            if !set.spinning.per_cpu || self.task.cpu().await == cpu {
                break lock;
            }
            self.task.release(lock).await;
        };
        if set.spinning.per_cpu {
            self.holds.push((place, taken));
        }
        stage.count(step.counters.taken, 1);
        stage.count(step.counters.contended, took.contended.into());
        stage.count(step.counters.spun, set.spinning.spun_ns(took.looks));
        Ok(())
    }

    /// Looks at `lock` until it is taken.
    async fn look(
        &mut self,
        lock: Spinlock,
        spinning: &Spinning,
        step: &TakeSpinlock,
        took: &mut Took,
    ) {
        let mut slept = None;
        loop {
            let looked = self
                .task
                .look(lock, spinning.spins, Duration(spinning.pause))
                .await;
            let looks = spinning.spins - looked.left;
            took.looks = took.looks.saturating_add(looks);
            took.contended |= looks > 0 || !looked.taken;
            if looked.taken {
                return;
            }
            match spinning.then {
                InVain::Yield => self.task.yield_now().await,
                InVain::Sleep { delay, most } => {
                    let span = slept.map_or(delay, |before| {
                        let below = |bound| self.random(step.stream, bound);
                        longer(before, (delay, most), below)
                    });
                    slept = Some(span);
                    self.task.sleep(Duration(span)).await;
                }
                InVain::Futex => return self.task.sleep_for_spinlock(lock).await,
            }
        }
    }

    /// Releases a spin lock; of those of the CPUs the one that this task took last.
    pub(super) async fn release_spinlock(&mut self, lock: &Which) -> Result<(), Left> {
        let place = self.place(lock)?;
        let held = self.holds.iter().rposition(|(held, _)| *held == place);
        let lock = match held {
            Some(held) => self.holds.swap_remove(held).1,
            None => self.stage.objects.spinlocks[place].locks[0],
        };
        self.task.release(lock).await;
        Ok(())
    }
}
