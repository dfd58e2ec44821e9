//! Real-time tasks or threads of the kernel had the CPU.

use warmq_units::{CpuSet, Duration, Instant};

use super::waited;
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{list, share, span, thousandths};

/// Of those who ran where it waited, in thousandths.
const LEAST_BESIDE: u64 = 600;
/// Of the time that it wanted, in thousandths.
const LEAST_WAITED: u64 = 600;

const OF_REALTIME: &[Cure] = &[
    Cure::new(
        "let the real-time task sleep, or give it a policy that shares (SCHED_OTHER, negative nice)",
        "it waits for others now and then",
    ),
    Cure::new(
        "keep it on CPUs of its own (cpuset, isolated CPUs)",
        "the other tasks have fewer CPUs",
    ),
    Cure::new(
        "leave more to fair tasks: /sys/kernel/debug/sched/fair_server/cpuN/runtime",
        "real-time tasks are kept waiting for as long",
    )
    .on("Linux 6.12 or later; before, sched_rt_runtime_us limits all real-time tasks together"),
];
const OF_PEERS: &[Cure] = &[
    Cure::new(
        "let the real-time task that runs sleep, or give it a lower priority; those of one priority \
         share with SCHED_RR (`chrt --rr`)",
        "it waits for this one",
    ),
    Cure::new(
        "keep it on CPUs of its own (cpuset, isolated CPUs)",
        "the other tasks have fewer CPUs",
    ),
];
const OF_KERNEL: &[Cure] = &[
    Cure::new(
        "see what the thread does (`perf top -t`, /proc/PID/stack): work of a device or a file \
         system is done for somebody",
        "nothing",
    ),
    Cure::new(
        "move the device's interrupts or the workqueue (/sys/devices/virtual/workqueue/cpumask) \
         to another CPU",
        "whoever runs there has less",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if case.waited < LEAST_WAITED {
        return None;
    }
    // One of the same priority or a lower one waits until those that run sleep.
    let is_peer = facts.is_realtime(case.id);
    let realtime = |id| facts.is_realtime(id);
    // ksoftirqd does the work of interrupts, which is another rule; a thread of the kernel is as
    // good as any other, and waits for real-time tasks alone.
    let waits = !facts.is_kernel(case.id) && !is_peer;
    let kernel = |id| waits && facts.is_kernel(id) && !facts.is_softirqd(id);
    let of_realtime = case.share_beside(realtime);
    let of_kernel = case.share_beside(|id| kernel(id) && !realtime(id));
    if of_realtime + of_kernel < LEAST_BESIDE {
        return None;
    }
    let most = of_realtime >= of_kernel;
    let who = list(
        &case.names_beside(|id| realtime(id) == most && (most || kernel(id))),
        3,
    );
    let (what, cures) = match most {
        true if is_peer => ("real-time tasks", OF_PEERS),
        true => ("real-time tasks", OF_REALTIME),
        false => ("threads of the kernel", OF_KERNEL),
    };
    Some(Finding {
        cause: format!("{what} {who}"),
        says: format!("{} beside {what}: {who}", waited(case)),
        because: format!(
            "{}. {}",
            case.had("They", |id| realtime(id) || kernel(id)),
            left(case)
        ),
        cures: cures.to_vec(),
    })
}

/// What fair tasks had of the CPUs where it waited.
fn left(case: &Case<'_, '_>) -> String {
    let facts = case.facts;
    let cpus = case.where_it_waited();
    let ran = |realtime: bool| -> Duration {
        let those = facts.ids().filter(|id| facts.is_realtime(*id) == realtime);
        let places = those.flat_map(|id| &facts.tally(id).places);
        let there = places.filter(|place| cpus.contains(&place.cpu));
        there.map(|place| place.ran).sum()
    };
    let all = cpus.iter().map(|cpu| facts.recorded(*cpu)).sum();
    let list: CpuSet = cpus.iter().copied().collect();
    let of = |realtime| share(thousandths(ran(realtime), all));
    // Sums are kept by steps: those around a single wait are longer than it.
    let when = match facts.whole {
        true => "In all".to_owned(),
        false => {
            let at = |at: Instant| span(at.since(Instant::START));
            format!("From {} to {}", at(facts.from), at(facts.to))
        }
    };
    format!(
        "{when} real-time tasks had {} of CPU {list}, and left {} to fair ones; its longest wait \
         was {}.",
        of(true),
        of(false),
        span(case.tally.longest.span())
    )
}

#[cfg(test)]
mod tests {
    use warmq_trace::{Comm, Header, Observer, Policy, Record};
    use warmq_units::{CpuId, Duration, Instant, TaskId};

    use crate::{Diagnosis, Kind, Verdict, Watcher};

    const WAITS: TaskId = TaskId(1);
    const BESIDE: TaskId = TaskId(2);

    /// On one CPU a task is woken at 10 ms and waits behind another one until 200 ms.
    fn waited(named: &str, introduced: &[Record]) -> Vec<Verdict> {
        let renamed = Record::Renamed {
            task: BESIDE,
            comm: Comm::new(named),
        };
        let woken = Record::Wakeup {
            waker: CpuId(0),
            task: WAITS,
            target: CpuId(0),
        };
        let header = Header {
            places: vec![(0, 0)],
            ..Header::default()
        };
        let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
        let mut see =
            |ms, record: &Record| watcher.see(Instant::START + Duration::from_ms(ms), record);
        see(0, &renamed);
        introduced.iter().for_each(|record| see(0, record));
        see(0, &switch(None, Some(BESIDE)));
        see(10, &woken);
        see(200, &switch(Some(BESIDE), Some(WAITS)));
        see(210, &switch(Some(WAITS), None));
        Diagnosis::of(watcher).verdicts
    }

    fn switch(prev: Option<TaskId>, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CpuId(0),
            prev,
            prev_runnable: false,
            next,
        }
    }

    #[test]
    fn shares_are_of_the_time_that_stands_beside_them() {
        // Of two seconds a task of SCHED_FIFO has the second half.
        let policy = Record::Policy {
            task: BESIDE,
            policy: Policy::Fifo,
            priority: 50,
        };
        let header = Header {
            places: vec![(0, 0)],
            ..Header::default()
        };
        let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
        let woken = Record::Wakeup {
            waker: CpuId(0),
            task: WAITS,
            target: CpuId(0),
        };
        let preempted = |next| Record::Switch {
            cpu: CpuId(0),
            prev: Some(WAITS),
            prev_runnable: true,
            next,
        };
        for (ms, record) in [
            (0, policy),
            (0, woken),
            (0, switch(None, Some(WAITS))),
            (1_020, preempted(Some(BESIDE))),
            (2_020, switch(Some(BESIDE), Some(WAITS))),
            (2_060, switch(Some(WAITS), None)),
            (4_040, switch(None, Some(WAITS))),
        ] {
            watcher.see(Instant::START + Duration::from_ms(ms), &record);
        }
        let verdicts = Diagnosis::of(watcher).verdicts;
        assert_eq!(kinds(&verdicts), [Kind::Realtime]);
        let because = &verdicts[0].because;
        let share = "From 1.00 s to 2.05 s real-time tasks had 95 % of CPU 0, and left 4.7 % to";
        assert!(because.contains(share), "{because}");
    }

    fn of_kernel(task: TaskId) -> Record {
        Record::KernelThread { task }
    }

    fn kinds(verdicts: &[Verdict]) -> Vec<Kind> {
        verdicts.iter().map(|verdict| verdict.kind).collect()
    }

    #[test]
    fn a_task_beside_a_thread_of_the_kernel_waited_for_it() {
        for (name, introduced) in [
            ("crypt", vec![of_kernel(BESIDE)]),
            // A recording that does not say who is one: the name does.
            ("kworker/0:1", vec![]),
        ] {
            let verdicts = waited(name, &introduced);
            assert_eq!(kinds(&verdicts), [Kind::Realtime], "{name}");
            let says = &verdicts[0].says;
            assert!(says.contains("beside threads of the kernel: "), "{says}");
            assert!(says.contains(name), "{says}");
            assert!(verdicts[0].cures[0].does.contains("/proc/PID/stack"));
        }
    }

    #[test]
    fn a_thread_of_the_kernel_waits_for_real_time_tasks_alone() {
        let both = [of_kernel(WAITS), of_kernel(BESIDE)];
        assert_ne!(kinds(&waited("crypt", &both)), [Kind::Realtime]);
        let fifo = Record::Policy {
            task: BESIDE,
            policy: Policy::Fifo,
            priority: 50,
        };
        let verdicts = waited("crypt", &[of_kernel(WAITS), of_kernel(BESIDE), fifo]);
        assert_eq!(kinds(&verdicts), [Kind::Realtime]);
        assert!(verdicts[0].says.contains("beside real-time tasks"));
    }

    #[test]
    fn what_ksoftirqd_does_is_the_work_of_interrupts() {
        let verdicts = waited("ksoftirqd/0", &[of_kernel(BESIDE)]);
        assert_eq!(kinds(&verdicts), [Kind::Interrupts]);
    }
}
