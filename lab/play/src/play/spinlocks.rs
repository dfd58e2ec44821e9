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

/// Looks in vain are counted so often at least: those of a warm-up are none of the measurement,
/// and who never gets the lock is counted, too.
const COUNTED_EVERY: Duration = Duration::from_ms(1);

impl Player {
    /// Takes a spin lock as its table says, and counts what that took.
    pub(super) async fn take_spinlock(&mut self, step: &TakeSpinlock) -> Result<(), Left> {
        let (stage, place) = (self.stage.clone(), self.place(&step.lock)?);
        let set = &stage.objects.spinlocks[place];
        let mut contended = false;
        let taken = loop {
            let cpu = self.task.cpu().await;
            let lock = set.locks[cpu.index() % set.locks.len()];
            self.look(lock, &set.spinning, step, &mut contended).await;
            if !set.spinning.per_cpu || self.task.cpu().await == cpu {
                break lock;
            }
            self.task.release(lock).await;
        };
        if set.spinning.per_cpu {
            self.holds.push((place, taken));
        }
        stage.count(step.counters.taken, 1);
        stage.count(step.counters.contended, contended.into());
        Ok(())
    }

    /// Looks at `lock` until it is taken; counts looks in vain, and says whether there were any.
    async fn look(
        &mut self,
        lock: Spinlock,
        spinning: &Spinning,
        step: &TakeSpinlock,
        contended: &mut bool,
    ) {
        let pause = Duration(spinning.pause);
        let most = (COUNTED_EVERY.0 / pause.0.max(1)).max(1);
        let (mut slept, mut left) = (None, spinning.spins);
        loop {
            let asked = left.min(most);
            let looked = self.task.look(lock, asked, pause).await;
            let looks = asked - looked.left;
            left -= looks;
            *contended |= looks > 0 || !looked.taken;
            let spun = spinning.spun_ns(looks);
            self.stage.count(step.counters.spun, spun);
            if looked.taken {
                return;
            }
            if left > 0 {
                continue;
            }
            left = spinning.spins;
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
