//! Where a new task begins: on the idlest CPU, from the largest domain of its parent's CPU down
//! (`sched_balance_find_dst_cpu()`).

use warmq_kernel::{Context, View};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::spans::descend;

use super::domains::{Domain, Group};
use super::standing::{Fullness, Standing, counted_between_nodes};
use super::state::State;
use super::weights::{NICE_0, down};

/// How much less loaded another group has to be for a task to leave its own.
#[derive(Clone, Copy, Debug)]
struct Terms {
    imbalance_pct: u64,
    /// Where groups are nodes, up to so many tasks may stay together.
    nodes: Option<u64>,
}

/// Whether `group` is idler than `best` (`update_pick_idlest()`).
fn is_idler(group: &Standing, best: &Standing) -> bool {
    use Fullness::{FullyBusy, HasSpare, Misfit, Overloaded};
    if group.fullness != best.fullness {
        return group.fullness < best.fullness;
    }
    match group.fullness {
        Overloaded | FullyBusy => group.average_load() < best.average_load(),
        Misfit => group.most > best.most,
        HasSpare => {
            (group.idle, std::cmp::Reverse(group.util)) > (best.idle, std::cmp::Reverse(best.util))
        }
        _ => false,
    }
}

/// Whether a new task leaves the `local` group for `idlest` (`sched_balance_find_dst_group()`).
fn leaves(local: &Standing, idlest: &Standing, terms: Terms) -> bool {
    use Fullness::{FullyBusy, HasSpare, Misfit, Overloaded};
    if local.fullness != idlest.fullness {
        return local.fullness > idlest.fullness;
    }
    match local.fullness {
        Overloaded | FullyBusy => {
            let (own, theirs) = (local.average_load(), idlest.average_load());
            let imbalance = down(NICE_0) * (terms.imbalance_pct - 100) / 100;
            let is_near = terms.nodes.is_some() && theirs + imbalance >= own;
            !is_near && theirs < own + imbalance && 100 * own > terms.imbalance_pct * theirs
        }
        Misfit => local.most < idlest.most,
        HasSpare => {
            let differ = local.idle.abs_diff(idlest.idle);
            let stays = terms.nodes.is_some_and(|allowed| {
                counted_between_nodes(differ, local.running + 1, allowed) == 0
            });
            !stays && local.idle < idlest.idle
        }
        _ => false,
    }
}

impl State {
    /// The idlest CPU for a new task.
    pub(super) fn idlest(&self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        let size = |domain: &Domain| domain.span.len();
        let placing = |domain: &&Domain| domain.level.places_new;
        let idlest = descend(
            context.cpu(),
            |cpu| {
                self.cpu(cpu)
                    .domains
                    .iter()
                    .filter(placing)
                    .map(size)
                    .collect()
            },
            |cpu, domain| self.idlest_in(context, task, (cpu, domain)),
        );
        context.allowed_near(task, idlest)
    }

    /// The idlest CPU of the idlest group of a domain; `None` if that is the own group, which is
    /// then looked at more closely.
    fn idlest_in(
        &self,
        context: &mut Context<'_>,
        task: TaskId,
        (cpu, domain): (CpuId, usize),
    ) -> Option<CpuId> {
        let domain = &self.cpu(cpu).domains[domain];
        let lines = domain.span.iter().map(|cpu| self.cpu(*cpu).line);
        context.touch_all(lines, Access::Read);
        let view = context.task(task);
        let usable = |cpu: &CpuId| view.may_run_on(*cpu);
        let pct = domain.level.imbalance_pct;
        let unlike = domain.capacities.is_any();
        let standing = |group: &Group| self.standing_for_new(group, view, (unlike, pct));
        let others = domain.groups[1..].iter();
        let mut best: Option<(&Group, Standing)> = None;
        for group in others.filter(|group| group.cpus.iter().any(usable)) {
            let candidate = standing(group);
            if best
                .as_ref()
                .is_none_or(|(_, best)| is_idler(&candidate, best))
            {
                best = Some((group, candidate));
            }
        }
        let (group, idlest) = best?;
        let own = &domain.groups[0];
        let terms = Terms {
            imbalance_pct: pct,
            nodes: domain.level.spans_nodes.then(|| {
                let may = own.cpus.iter().filter(|cpu| usable(cpu)).count() as u64;
                domain.node_imbalance.min(may)
            }),
        };
        let may_stay = own.cpus.iter().any(usable);
        if may_stay && !leaves(&standing(own), &idlest, terms) {
            return None;
        }
        Some(self.idlest_of(group, view, cpu)).filter(|idlest| *idlest != cpu)
    }

    /// `update_sg_wakeup_stats()`: only CPUs where the task may run count. Where CPUs are `unlike`,
    /// it should fit on one of them.
    fn standing_for_new(
        &self,
        group: &Group,
        view: View<'_>,
        (unlike, pct): (bool, u64),
    ) -> Standing {
        let known = &self.capacities[group.capacity];
        let mut standing = Standing {
            cpus: group.cpus.len() as u64,
            capacity: known.capacity,
            most: known.most,
            is_imbalanced: known.imbalanced,
            ..Standing::default()
        };
        let mut fits = !unlike;
        for cpu in group.cpus.iter().filter(|cpu| view.may_run_on(**cpu)) {
            self.count_cpu(*cpu, &mut standing);
            fits |= self.fits(view.id(), *cpu);
        }
        standing.misfit = u64::from(!fits);
        standing.classify(pct)
    }

    /// Of idle CPUs the one that went idle last, else the one with the least load
    /// (`sched_balance_find_dst_group_cpu()`). One that runs but SCHED_IDLE tasks is as good as
    /// idle.
    fn idlest_of(&self, group: &Group, view: View<'_>, here: CpuId) -> CpuId {
        let usable = group
            .cpus
            .iter()
            .copied()
            .filter(|cpu| view.may_run_on(*cpu));
        let background = |cpu: &CpuId| !self.is_idle(*cpu) && self.has_background_only(*cpu);
        if let Some(cpu) = usable.clone().find(background) {
            return cpu;
        }
        let best = usable.min_by_key(|cpu| {
            let since = self.cpu(*cpu).idle_since.unwrap_or(0);
            match self.is_idle(*cpu) {
                true => (0, -since),
                false => (1, self.load(*cpu) as i64),
            }
        });
        best.unwrap_or(here)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::CAPACITY;
    use super::*;

    /// A node of eight CPUs on which `running` hogs run.
    fn node(running: u64) -> Standing {
        let busy = running.min(8) * CAPACITY;
        Standing {
            cpus: 8,
            capacity: 8 * CAPACITY,
            load: running * CAPACITY,
            util: busy,
            runnable: running * CAPACITY,
            running,
            fair: running,
            idle: 8u64.saturating_sub(running),
            ..Standing::default()
        }
        .classify(117)
    }

    /// Whether a task leaves a node with so many hogs for one with so many.
    fn moves(local: u64, other: u64, nodes: Option<u64>) -> bool {
        let terms = Terms {
            imbalance_pct: 117,
            nodes,
        };
        leaves(&node(local), &node(other), terms)
    }

    #[test]
    fn a_child_stays_in_its_node_while_that_has_few_tasks() {
        for (case, local, other, nodes, expected) in [
            ("both idle", 0, 0, Some(1), false),
            ("its parent alone", 1, 0, None, true),
            (
                "its parent alone, an eighth is allowed",
                1,
                0,
                Some(1),
                true,
            ),
            (
                "its parent alone, a quarter is allowed",
                1,
                0,
                Some(2),
                false,
            ),
            ("two, one more than allowed", 2, 0, Some(2), true),
            ("three, none there", 3, 0, Some(4), true),
            ("as many there", 3, 3, Some(1), false),
            ("more here", 12, 8, None, true),
            ("more here, of nodes", 12, 8, Some(1), true),
            ("hardly more here", 9, 9, None, false),
        ] {
            assert_eq!(moves(local, other, nodes), expected, "{case}");
        }
    }

    /// Where a task fits nowhere, the largest CPUs are the best.
    #[test]
    fn a_child_that_needs_a_larger_cpu_goes_to_the_largest() {
        let of = |most: u64, running: u64| {
            Standing {
                misfit: 1,
                most,
                ..node(running)
            }
            .classify(117)
        };
        let terms = Terms {
            imbalance_pct: 117,
            nodes: None,
        };
        assert!(is_idler(&of(1_024, 3), &of(446, 0)));
        assert!(!is_idler(&of(446, 0), &of(446, 3)), "the first of equals");
        assert!(leaves(&of(446, 0), &of(1_024, 3), terms));
        assert!(!leaves(&of(1_024, 3), &of(446, 0), terms));
        assert!(is_idler(&node(3), &of(1_024, 0)), "where it fits");
    }

    #[test]
    fn the_idlest_group_has_most_idle_cpus_and_then_least_use() {
        assert!(is_idler(&node(2), &node(3)));
        assert!(!is_idler(&node(3), &node(3)), "the first of equals");
        assert!(is_idler(&node(7), &node(8)), "one with room");
        assert!(is_idler(&node(9), &node(20)), "less load");
    }
}
