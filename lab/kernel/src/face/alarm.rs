//! A timer that is set anew again and again.

use warmq_units::{CpuId, Duration, Instant};

use crate::face::Context;
use crate::words::Timer;

/// A timer of a scheduler that is armed for one time, or for none.
#[derive(Clone, Debug, Default)]
pub struct Alarm(Option<(Timer, i64)>);

impl Alarm {
    /// Lets it expire on `cpu`, with `token`, when the machine has run for `due` ns, or now if that
    /// has passed; `None`: never. One that is armed for that time stays.
    pub fn set(&mut self, context: &mut Context<'_>, due: Option<i64>, (cpu, token): (CpuId, u64)) {
        if self.0.map(|(_, due)| due) == due {
            return;
        }
        if let Some((timer, _)) = self.0.take() {
            context.cancel_timer(timer);
        }
        self.0 = due.map(|due| {
            let at = Instant::START + Duration::from_ns(due.max(0) as u64);
            (context.arm_timer(cpu, at, token), due)
        });
    }

    /// It has expired.
    pub fn expired(&mut self) {
        self.0 = None;
    }
}
