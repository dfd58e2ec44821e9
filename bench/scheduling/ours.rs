//! Our side of the comparison with SimSo: the same periodic tasks under Linux 2.4's scheduler, on a
//! machine without caches, with the kernel's own work at its costs on the 8-way Pentium III Xeon.
//!
//! `compare_scheduling CPUS TASKS PERIOD_MS WORK_MS SECONDS` prints the scheduling events by kind,
//! and how long the run took. Only the run is timed.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the clock of the host is what it measures with"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant as HostInstant;

use warmq_config::Chosen;
use warmq_kernel::{Boot, Costs, Ending, Kernel, Settings, Task, TaskSpec};
use warmq_machine::{Overrides, builtin, read_toml};
use warmq_trace::{Observer, Record};
use warmq_units::{Duration, Instant, Seed};

const MACHINE: &str = "p3xeon-8way";

/// The events that both sides know.
#[derive(Default)]
struct Events {
    woken: u64,
    switched_in: u64,
    switched_out: u64,
}

impl Observer for Events {
    fn see(&mut self, _: Instant, record: &Record) {
        match record {
            Record::Wakeup { .. } => self.woken += 1,
            Record::Switch { prev, next, .. } => {
                self.switched_in += u64::from(next.is_some());
                self.switched_out += u64::from(prev.is_some());
            }
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .map(|word| word.parse())
        .collect::<Result<_, _>>()?;
    let [cpus, tasks, period_ms, work_ms, seconds] = numbers[..] else {
        return Err("usage: compare_scheduling CPUS TASKS PERIOD_MS WORK_MS SECONDS".into());
    };
    let mut kernel = boot(cpus as u16, tasks, period_ms, work_ms)?;
    let start = HostInstant::now();
    let ending = kernel.run_until(Instant::START + Duration::from_s(seconds));
    let took = start.elapsed().as_secs_f64();
    if ending != Ending::TimeUp {
        return Err(format!("{ending:?}").into());
    }
    let Events {
        woken,
        switched_in,
        switched_out,
    } = kernel.into_observer();
    println!(
        "{{\"events\": {}, \"kinds\": {{\"woken\": {woken}, \"switched_in\": {switched_in}, \
         \"switched_out\": {switched_out}}}, \"seconds\": {took:.6}}}",
        woken + switched_in + switched_out
    );
    Ok(())
}

/// Each task works and sleeps until the next multiple of the period: sleeps end at multiples of
/// the timer's resolution, which is the period here.
fn boot(
    cpus: u16,
    tasks: u64,
    period_ms: u64,
    work_ms: u64,
) -> Result<Kernel<Events>, Box<dyn Error>> {
    let text = builtin(MACHINE).ok_or("the machine is built in")?;
    let whole = read_toml(MACHINE, text)?;
    let overrides = Overrides {
        cpus: Some(cpus),
        cache_sizes: BTreeMap::new(),
    };
    let machine = whole.with_overrides(&overrides)?;
    let work = machine.clock.cycles_in(Duration::from_ms(work_ms));
    let workload = move |boot: &mut Boot<'_>| {
        for number in 0..tasks {
            let mm = boot.mm();
            let spec = TaskSpec::new(&format!("task{number}"), Some(mm));
            boot.task(spec, move |task: Task| async move {
                loop {
                    task.compute(work).await;
                    task.sleep(Duration::from_us(1)).await;
                }
            })?;
        }
        Ok(())
    };
    let settings = Settings {
        caches: false,
        timer_resolution: Duration::from_ms(period_ms),
        ..Settings::linux24(Seed(1))
    };
    let entry = warmq_sched::scheduler("linux24").ok_or("the scheduler is built in")?;
    let chosen = Chosen::new(entry.settings(), BTreeMap::new())?;
    let costs = Costs::new(machine.costs[entry.kernel].clone());
    Ok(Kernel::boot(
        &machine,
        &costs,
        settings,
        entry.build(chosen),
        &workload,
        Events::default(),
    )?)
}
