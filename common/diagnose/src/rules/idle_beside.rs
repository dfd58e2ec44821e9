//! A CPU idled that it may use.

use std::collections::BTreeMap;

use warmq_trace::Header;
use warmq_units::{CpuId, Release};

use super::waited;
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::release::kernel_of;
use crate::verdict::Finding;
use crate::words::{count, list, share, thousandths};

/// Of what it wanted it waited so much, in thousandths.
const LEAST_WAITED: u64 = 400;
/// Of its wait some CPU idled that it may use, in thousandths. Less is the time that balancing
/// takes, and idle moments that are too short to be used.
const LEAST_IDLE: u64 = 500;

/// Of those who ran where it waited so much may not leave, in thousandths.
const LEAST_BOUND: u64 = 500;

const CURES: &[Cure] = &[
    Cure::new(
        "see whether the scheduler balances there: cpuset partitions, isolcpus and \
         sched_relax_domain_level switch it off",
        "where that was meant, its CPUs are disturbed again",
    ),
    Cure::new(
        "try another scheduler (scx_warmq looks for waiting tasks before a CPU idles)",
        "another scheduler for all tasks",
    )
    .on("Linux 6.12 or later with sched_ext"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let idle = thousandths(case.tally.idle.inside, case.tally.waited);
    if case.waited < LEAST_WAITED || idle < LEAST_IDLE {
        return None;
    }
    let unknown = match may_have_a_quota(case) {
        true => {
            " The recording does not say whether its group has a quota, which this scheduler may \
             keep by itself."
        }
        false => "",
    };
    Some(Finding {
        cause: String::new(),
        says: format!("{}, though a CPU idled that it may use", waited(case)),
        because: format!(
            "For {} of its wait there was one: {}.{unknown}",
            share(idle),
            why(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// Why it was not moved, as far as the records show.
fn why(case: &Case<'_, '_>) -> String {
    if let Some(loads) = loads(case) {
        return loads;
    }
    let facts = case.facts;
    let idle = case.tally.idle;
    let on_node = thousandths(idle.on_node, idle.inside);
    if !facts.header.nodes.is_empty() && on_node < LEAST_IDLE {
        return format!(
            "of the memory node of its own CPU for {} of that, so that tasks would have to move \
             between nodes: no wakeup looks there, and balancing does so last and leaves a node \
             some tasks more",
            share(on_node)
        );
    }
    let near = thousandths(idle.near, idle.inside);
    if !facts.header.places.is_empty() && near < LEAST_IDLE {
        return format!(
            "under the cache of its own CPU for {} of that, so that tasks would have to move \
             between caches, which balancing does later and for more imbalance",
            share(near)
        );
    }
    let own = &facts.task(case.id).who.cpus;
    let is_bound = |id| {
        let cpus = &facts.task(id).who.cpus;
        !cpus.is_all() && cpus != own
    };
    if case.share_beside(is_bound) >= LEAST_BOUND {
        return format!(
            "{} may not use it, and balancing that meets tasks which it cannot move may leave the \
             others, too",
            list(&case.names_beside(is_bound), 3)
        );
    }
    "balancing left it where it was, or nobody woke the CPU".to_owned()
}

/// The CPUs under a cache, and those who want them.
#[derive(Clone, Copy, Debug, Default)]
struct Cache {
    cpus: u64,
    load: u64,
    /// How many want them on average, in thousandths.
    tasks: u64,
    /// The CPU that has the largest load, and that.
    most: (u64, CpuId),
}

impl Cache {
    fn count(&mut self, cpu: CpuId, load: u64, tasks: u64) {
        self.cpus += 1;
        self.load += load;
        self.tasks += tasks;
        self.most = self.most.max((load, cpu));
    }

    /// One of its CPUs idles for half of the time and more.
    fn idles(&self) -> bool {
        self.tasks + LEAST_IDLE <= self.cpus * 1_000
    }

    fn load_of_each(&self) -> u64 {
        self.load / self.cpus.max(1)
    }
}

/// That CPUs under another cache, of which some idle, have a greater load than those under its own,
/// where the kernel balances by load.
fn loads(case: &Case<'_, '_>) -> Option<String> {
    let facts = case.facts;
    let places = &facts.header.places;
    let waited = *case.where_it_waited().first()?;
    let (_, own) = *places.get(waited.index())?;
    let mut caches: BTreeMap<u16, Cache> = BTreeMap::new();
    for (cpu, (_, llc)) in (0..).map(CpuId).zip(places) {
        let (load, tasks) = (facts.dues.load_on(cpu), facts.dues.tasks_on(cpu));
        caches.entry(*llc).or_default().count(cpu, load, tasks);
    }
    let own = caches.remove(&own)?;
    let others = caches.values().filter(|cache| cache.idles());
    let most = others.max_by_key(|cache| cache.load_of_each())?;
    if !balances_by_load(facts.header) || most.load_of_each() <= own.load_of_each() {
        return None;
    }
    Some(format!(
        "under the cache of CPU {}, where tasks or groups of much weight run, so that each CPU there \
         counts as {} by load, idle ones too, and each where it waited as {}: this kernel balances \
         by that",
        most.most.1.0,
        count(most.load_of_each()),
        count(own.load_of_each())
    ))
}

/// Whether CPUs that idle balance by load, too: until Linux 5.5, which counts tasks for these
/// (`calculate_imbalance()`).
fn balances_by_load(header: &Header) -> bool {
    let before = |(_, release): (_, Release)| !release.is_from(5, 5);
    header.scheduler == "cfs" || shares_by_groups(header) && kernel_of(header).is_some_and(before)
}

/// Whether a quota that nobody has recorded may be why: recorders say of each group whether it has
/// one (not so before `Record::Limit` was), and the lab of those that have.
fn may_have_a_quota(case: &Case<'_, '_>) -> bool {
    let header = case.facts.header;
    let groups = &case.facts.watcher.groups;
    let all = groups.upwards(case.group());
    let unknown = all.iter().any(|group| groups.limit(*group).is_none());
    unknown && header.clock != "simulated" && !shares_by_groups(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cpus_balance_by_load_until_5_5_and_under_the_kernels_own_scheduler_alone() {
        let by_load = |scheduler: &str, kernel: &str| {
            balances_by_load(&Header {
                scheduler: scheduler.to_owned(),
                kernel: kernel.to_owned(),
                ..Header::default()
            })
        };
        let known = [("kernel", "4.19.3"), ("kernel", "5.4.0"), ("cfs", "")];
        assert!(known.iter().all(|(by, kernel)| by_load(by, kernel)));
        let others = [
            ("kernel", "5.5.1"),
            ("kernel", ""),
            ("scx_mine", "4.19.3"),
            ("eevdf-6.12", ""),
        ];
        assert!(others.iter().all(|(by, kernel)| !by_load(by, kernel)));
    }
}
