//! Interrupts and softirqs had the CPU.

use warmq_units::CpuId;

use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{rate, share, span, thousandths};

/// Of the time that the task wanted its CPUs, in thousandths: a quarter. Less is what a busy
/// network card takes, and is charged to nobody.
const LEAST: u64 = 250;

/// A card whose packets take much of a CPU interrupts so often in a second, unless it is polled.
const LEAST_DEVICE: u64 = 100;
/// Of the softirqs that had the CPUs, in thousandths: from there on it is packets.
const LEAST_NETWORK: u64 = 500;

/// Where softirqs of other kinds had most.
const OF_THE_KERNEL: &[Cure] = &[
    Cure::new(
        "see which softirqs they are (/proc/softirqs, events irq:softirq_entry); RCU's can go to \
         threads (`rcu_nocbs=`, `rcutree.use_softirq=0`)",
        "a switch for each batch, and these threads wait as others do",
    ),
    BIND,
];

/// Where no device interrupts, and packets are received.
const OF_THIS_MACHINE: &[Cure] = &[
    Cure::new(
        "let other CPUs receive them, where RPS steers them to this one \
         (/sys/class/net/lo/queues/rx-0/rps_cpus, and of veth)",
        "other CPUs do that work, or the senders' do",
    ),
    Cure::new(
        "send fewer and larger messages, or use Unix sockets on one machine",
        "the programs have to change",
    ),
    BIND,
];

const BIND: Cure = Cure::new(
    "bind the task to a CPU that serves no interrupts",
    "it cannot use the other CPUs",
);

const OF_DEVICES: &[Cure] = &[
    Cure::new(
        "spread the interrupts of the device over CPUs (/proc/irq/N/smp_affinity, RSS, RPS)",
        "other CPUs are interrupted, and packets of one flow touch more caches",
    ),
    Cure::new(
        "let the card wait for more packets before it interrupts (ethtool -C)",
        "each packet comes later by that wait",
    ),
    BIND,
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if facts.cpus_take_turns() {
        return None;
    }
    // ksoftirqd itself waits for what softirqs do on the way out of interrupts.
    let deferred = case.beside(|id| facts.is_softirqd(id) && id != case.id);
    let taken = case.tally.interrupted + deferred;
    let of_all = thousandths(taken, case.wanted);
    if of_all < LEAST {
        return None;
    }
    let there = case.where_it_waited();
    let cpus: Vec<String> = there.iter().map(|cpu| cpu.0.to_string()).collect();
    let (whence, cures) = whence(case, &there);
    Some(Finding {
        cause: format!("CPUs {}", cpus.join(",")),
        says: format!(
            "{} wanted a CPU for {}, of which interrupts and softirqs had {}",
            case.name(),
            span(case.wanted),
            span(taken)
        ),
        because: format!(
            "That is {} of the time; ksoftirqd had {} of it. Interrupts come before every task, and \
             what they take is taken from whoever runs.{whence}",
            share(of_all),
            span(deferred)
        ),
        cures: cures.to_vec(),
    })
}

/// Where the packets come from, and what helps.
fn whence(case: &Case<'_, '_>, there: &[CpuId]) -> (&'static str, &'static [Cure]) {
    let facts = case.facts;
    let is_there = |cpu| there.is_empty() || there.contains(&cpu);
    let (devices, network) = facts.watcher.of_network(is_there);
    let all = facts.watcher.interrupts();
    let all = all.filter(|(cpu, _, _)| is_there(*cpu));
    let softirqs = all.map(|(_, _, softirqs)| softirqs).sum();
    if rate(devices, facts.watcher.measured()) >= LEAST_DEVICE {
        return ("", OF_DEVICES);
    }
    match thousandths(network, softirqs) >= LEAST_NETWORK {
        true => (
            " They are packets, and no device interrupted these CPUs 100 times a second: they are \
             sent on this machine (loopback, veth), or a card is polled.",
            OF_THIS_MACHINE,
        ),
        false => (
            " They are neither packets nor of a device that interrupts 100 times a second: timers, \
             RCU and the like.",
            OF_THE_KERNEL,
        ),
    }
}
