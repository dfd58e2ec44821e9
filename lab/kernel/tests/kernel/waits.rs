//! A CPU that waits busily for another one.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_units::{CpuId, Instant};

use crate::round_robin::*;
use crate::support::*;

/// When ticks of a CPU came, in ms.
type Ticks = Rc<RefCell<Vec<u64>>>;

/// The first tick of CPU 0 makes it wait until the third one of CPU 1.
struct Waits {
    how: BusyWait,
    ticks: [Ticks; 2],
}

impl Hooks for Waits {
    fn tick(&mut self, context: &mut Context<'_>) -> bool {
        let here = context.cpu();
        let at = (context.now() - Instant::START).as_us() / 1_000;
        self.ticks[here.index()].borrow_mut().push(at);
        match (here, self.ticks[here.index()].borrow().len()) {
            (CpuId(0), 1) => context.wait_busily(self.how),
            (CpuId(1), 3) => context.looks_again(CpuId(0)),
            _ => {}
        }
        true
    }

    fn keeps_waiting(&mut self) -> bool {
        self.ticks[1].borrow().len() < 3
    }
}

/// The ticks of CPU 0, and those of CPU 1.
fn ticks(how: BusyWait) -> [Vec<u64>; 2] {
    let ticks = [Ticks::default(), Ticks::default()];
    let seen = ticks.clone();
    let make = hooked(move |_| Waits { how, ticks });
    stage(2)
        .under(make)
        .until_ms(60)
        .plays(|boot: &mut Boot<'_>| -> Started {
            for on in 0..2 {
                boot.task(called("hog").bound([cpu(on)]), |task: Task| async move {
                    task.compute(us(1_000_000)).await;
                })?;
            }
            Ok(())
        });
    seen.map(|ticks| ticks.borrow().clone())
}

/// Ticks come each 10 ms, those of CPU 1 5 ms later. Of those that come while interrupts are off
/// one is left when they are on again.
#[test]
fn it_takes_interrupts_meanwhile_or_it_does_not() {
    let others = vec![10, 20, 30, 40, 50, 60];
    let on = ticks(BusyWait::InterruptsOn);
    let off = ticks(BusyWait::InterruptsOff);
    assert_eq!([&on[1], &off[1]], [&others; 2]);
    assert_eq!(on[0], [5, 15, 25, 35, 45, 55]);
    assert_eq!(off[0], [5, 30, 35, 45, 55]);
}
