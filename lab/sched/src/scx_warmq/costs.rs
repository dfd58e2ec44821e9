//! What the scheduler's own work takes, besides the memory that it touches.

use warmq_config::Setting;
use warmq_kernel::{Attach, UnknownCost};
use warmq_units::Cycles;

/// What of the kernel's own a wakeup, a pick and a switch take together.
const OWN: [&str; 3] = ["wakeup", "schedule_fixed", "context_switch"];

/// What BPF costs more than C.
///
/// `warmq-drill switch/` measures, in instructions of a guest of 6.18, a write, a read and a switch
/// in units of a write and a read without one: 2.85 under the kernel's own scheduler, 4.13 under
/// scx_warmq (docs/scheduler.md). That is 1.28 more to the 1.85 that waking, picking and switching
/// take.
pub(super) fn setting() -> Setting {
    Setting::count("bpf", (0, 1_000), 69, "%").says(
        "by how much a wakeup, the pick and the switch that follow take longer than under the kernel's own scheduler",
        "instructions in a guest of 6.18 (docs/scheduler.md, warmq-drill switch/)",
    )
}

/// In cycles, BPF included.
pub(super) struct Costs {
    pub(super) wakeup: Cycles,
    pub(super) pick: Cycles,
}

impl Costs {
    /// Where BPF adds `bpf` percent to what the kernel's own takes. Which half adds more was not
    /// measured.
    pub(super) fn new(attach: &mut Attach<'_>, bpf: u64) -> Result<Costs, UnknownCost> {
        let mut own = 0;
        for name in OWN {
            own += attach.cost(name)?.0;
        }
        let half = Cycles(own * bpf / 200);
        Ok(Costs {
            wakeup: attach.cost("wakeup")? + half,
            pick: attach.cost("schedule_fixed")? + half,
        })
    }
}
