//! The built-in masks of idle CPUs (kernel/sched/ext/idle.c), and how CPUs are picked from them.

use std::rc::Rc;

use warmq_bpf_run::{Access, Ending, Guest};
use warmq_units::{CpuId, CpuSet, TaskId};

use crate::ground::Ground;
use crate::masks;
use crate::state::Here;
use crate::words::{ops, pick, wake};

/// The masks of a memory node, or of the whole machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masks {
    /// Idle CPUs.
    pub(crate) cpus: u64,
    /// Those of cores that are wholly idle.
    pub(crate) cores: u64,
}

/// Idle CPUs, and the parts of the machine in which they are searched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle {
    /// Whether the kernel keeps the masks: not where the program has `ops.update_idle`, unless it
    /// asks for both.
    pub(crate) kept: bool,
    /// One for each node if the program asks for that, or one.
    pub(crate) masks: Vec<Masks>,
    pub(crate) per_node: bool,
    /// Whether a sync wakeup can bring a task to the waker's CPU.
    to_waker: bool,
    smt: bool,
    /// For each CPU the mask of its core, of its last-level cache, of its node. None of the latter
    /// two where all CPUs are in one.
    siblings: Vec<u64>,
    caches: Option<Vec<u64>>,
    nodes: Option<Vec<u64>>,
    nodes_of: Vec<u16>,
}

impl Idle {
    /// Of a machine and a program with these `flags`. Kernels that are not `mended` (that came in
    /// 7.0) ask the mask of the waker's node whether a CPU idles before a sync wakeup brings a task
    /// to the waker. Nobody keeps that mask where the program does not ask for one per node: it is
    /// empty, and no task comes.
    pub(crate) fn new(
        ground: &Ground,
        guest: &mut Guest,
        flags: u64,
        updates: bool,
        mended: bool,
    ) -> Result<Idle, Ending> {
        let (cpus, node) = (ground.cpus(), |cpu| ground.site(cpu).node);
        let nodes_of: Vec<u16> = cpus.clone().map(node).collect();
        let nodes = 1 + nodes_of.iter().copied().max().unwrap_or(0);
        let per_node = flags & ops::BUILTIN_IDLE_PER_NODE != 0;
        let count = if per_node { nodes } else { 1 };
        // All CPUs count as idle at first (`reset_idle_masks()`).
        let new = |guest: &mut Guest, of: u16| {
            let all = cpus.clone().filter(|cpu| !per_node || node(*cpu) == of);
            let all: CpuSet = all.collect();
            let (cpus, cores) = (masks::allocate(guest)?, masks::allocate(guest)?);
            masks::write(guest, cpus, Some(&all));
            masks::write(guest, cores, Some(&all));
            Ok(Masks { cpus, cores })
        };
        let masks: Result<Vec<Masks>, Ending> = (0..count).map(|node| new(guest, node)).collect();
        let place = |cpu| ground.site(cpu).place;
        let siblings = parts(guest, cpus.clone(), |cpu| place(cpu).core)?;
        let caches = parts(guest, cpus.clone(), |cpu| place(cpu).llc)?;
        let of_nodes = parts(guest, cpus.clone(), node)?;
        let all_in_one = |parts: &[u64]| parts.iter().all(|part| *part == parts[0]);
        let several = |parts: Vec<u64>| (!all_in_one(&parts)).then_some(parts);
        let mut cores: Vec<u16> = cpus.map(|cpu| place(cpu).core).collect();
        cores.dedup();
        cores.sort_unstable();
        cores.dedup();
        Ok(Idle {
            kept: !updates || flags & ops::KEEP_BUILTIN_IDLE != 0,
            masks: masks?,
            per_node,
            to_waker: per_node || mended,
            smt: cores.len() < nodes_of.len(),
            siblings,
            caches: several(caches),
            nodes: several(of_nodes),
            nodes_of,
        })
    }

    /// The masks that have a CPU.
    pub(crate) fn of_cpu(&self, cpu: CpuId) -> Masks {
        self.masks[self.index(cpu)]
    }

    /// Whether two CPUs have the same last-level cache.
    pub(crate) fn shares_cache(&self, one: CpuId, other: CpuId) -> bool {
        let caches = self.caches.as_ref();
        caches.is_none_or(|of| of[one.index()] == of[other.index()])
    }

    fn index(&self, cpu: CpuId) -> usize {
        match self.per_node {
            true => usize::from(self.nodes_of[cpu.index()]),
            false => 0,
        }
    }
}

/// For each CPU the mask of those with the same number.
fn parts(
    guest: &mut Guest,
    cpus: impl Iterator<Item = CpuId> + Clone,
    number: impl Fn(CpuId) -> u16,
) -> Result<Vec<u64>, Ending> {
    let mut known = std::collections::BTreeMap::new();
    let mut of_cpus = Vec::new();
    for cpu in cpus.clone() {
        let mask = match known.get(&number(cpu)) {
            Some(mask) => *mask,
            None => {
                let same: CpuSet = cpus
                    .clone()
                    .filter(|other| number(*other) == number(cpu))
                    .collect();
                let mask = masks::allocate(guest)?;
                masks::write(guest, mask, Some(&same));
                known.insert(number(cpu), mask);
                mask
            }
        };
        of_cpus.push(mask);
    }
    Ok(of_cpus)
}

impl Here<'_, '_> {
    /// The CPU of the context begins or ceases to be idle (`update_builtin_idle()`).
    pub(crate) fn note_idle(&mut self, cpu: CpuId, idle: bool) {
        if !self.state.idle.kept {
            return;
        }
        let masks = self.state.idle.of_cpu(cpu);
        self.put(masks.cpus, cpu, idle);
        if !self.state.idle.smt {
            return;
        }
        let core = self.state.idle.siblings[cpu.index()];
        let whole = idle && masks::is_subset(self.guest, core, masks.cpus);
        self.put_all(masks.cores, core, whole);
    }

    fn put(&mut self, mask: u64, cpu: CpuId, there: bool) {
        masks::put(self.guest, mask, cpu, there);
        self.access(mask + u64::from(cpu.0) / 64 * 8, 8, Access::Atomic);
    }

    /// Sets or clears all CPUs of a core.
    fn put_all(&mut self, mask: u64, core: u64, there: bool) {
        for at in 0..masks::words(self.guest) {
            let (old, these) = (
                masks::word(self.guest, mask, at),
                masks::word(self.guest, core, at),
            );
            let new = if there { old | these } else { old & !these };
            if new != old {
                // The mask is the kernel's own.
                let _ = self.guest.store(mask + at * 8, 8, new);
                self.access(mask + at * 8, 8, Access::Store);
            }
        }
    }

    /// `scx_idle_test_and_clear_cpu()`.
    pub(crate) fn claim_idle(&mut self, cpu: CpuId) -> bool {
        let masks = self.state.idle.of_cpu(cpu);
        if self.state.idle.smt {
            let core = self.state.idle.siblings[cpu.index()];
            self.access(masks.cores + u64::from(cpu.0) / 64 * 8, 8, Access::Load);
            self.put_all(masks.cores, core, false);
        }
        let was = masks::contains(self.guest, masks.cpus, cpu);
        let access = if was { Access::Atomic } else { Access::Load };
        self.access(masks.cpus + u64::from(cpu.0) / 64 * 8, 8, access);
        masks::put(self.guest, masks.cpus, cpu, false);
        was
    }

    /// Picks an idle CPU of `allowed` from one node's masks, that of a wholly idle core first
    /// (`pick_idle_cpu_in_node()`).
    fn pick_idle_in(&mut self, masks: Masks, allowed: &[u64], flags: u64) -> Option<CpuId> {
        if self.state.idle.smt {
            let found = self.next_of_all(masks.cores, allowed);
            if found.is_some() || flags & pick::CORE != 0 {
                return found.filter(|cpu| self.claim_idle(*cpu));
            }
        }
        let found = self.next_of_all(masks.cpus, allowed);
        found.filter(|cpu| self.claim_idle(*cpu))
    }

    /// `cpumask_any_and_distribute()`: each CPU goes on where it found one last.
    pub(crate) fn next_of_all(&mut self, mask: u64, allowed: &[u64]) -> Option<CpuId> {
        for at in 0..masks::words(self.guest).div_ceil(8) {
            self.access(mask + at * 64, 8, Access::Load);
        }
        let mut all = vec![mask];
        all.extend(allowed);
        let here = self.context.cpu();
        let found = masks::first_of_all(self.guest, &all, self.state.cpu(here).turn);
        if let Some(found) = found {
            self.state.cpu_mut(here).turn = u32::from(found.0) + 1;
        }
        found
    }

    /// `scx_pick_idle_cpu()`: the nodes from that of `near` on, which comes first.
    pub(crate) fn pick_idle(&mut self, allowed: &[u64], near: CpuId, flags: u64) -> Option<CpuId> {
        let (first, count) = (self.state.idle.index(near), self.state.idle.masks.len());
        let nodes = match flags & pick::IN_NODE {
            0 => count,
            _ => 1,
        };
        (0..nodes).find_map(|far| {
            let masks = self.state.idle.masks[(first + far) % count];
            self.pick_idle_in(masks, allowed, flags)
        })
    }

    /// `scx_select_cpu_dfl()`: an idle CPU for a task that last ran on `prev`, near it.
    pub(crate) fn select_default(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wakes: u64,
        cpus: Option<u64>,
        flags: u64,
    ) -> Option<CpuId> {
        let own = self
            .state
            .layouts
            .task
            .cpus_mask
            .within(self.state.task(task).address);
        let allowed = [own, cpus.unwrap_or(own)];
        let (idle, here) = (Rc::clone(&self.state.idle), self.context.cpu());
        let may = |here: &Self, cpu| {
            allowed
                .iter()
                .all(|mask| masks::contains(here.guest, *mask, cpu))
        };
        let prev_allowed = may(self, prev);
        if wakes & wake::SYNC != 0 {
            if prev_allowed && idle.shares_cache(here, prev) && self.claim_idle(prev) {
                return Some(prev);
            }
            let masks = idle.of_cpu(here);
            let near = flags & pick::IN_NODE == 0 || idle.index(here) == idle.index(prev);
            let empty = self.state.cpu(here).local.tasks.is_empty();
            let idles = idle.to_waker && !masks::is_empty(self.guest, masks.cpus);
            if empty && near && idles && may(self, here) {
                self.claim_idle(here);
                return Some(here);
            }
        }
        let parts = [&idle.caches, &idle.nodes].map(|of| of.as_ref().map(|of| of[prev.index()]));
        let masks = idle.of_cpu(prev);
        if idle.smt {
            let whole = prev_allowed && masks::contains(self.guest, masks.cores, prev);
            if whole && self.claim_idle(prev) {
                return Some(prev);
            }
            let found = self.pick_near(masks, &parts, &allowed, prev, flags | pick::CORE);
            if found.is_some() || flags & pick::CORE != 0 {
                return found;
            }
        }
        if prev_allowed && self.claim_idle(prev) {
            return Some(prev);
        }
        if idle.smt {
            let core = idle.siblings[prev.index()];
            let siblings = (0..self.context.cpus()).map(CpuId);
            for sibling in siblings.filter(|cpu| *cpu != prev) {
                let same = masks::contains(self.guest, core, sibling);
                if same && may(self, sibling) && self.claim_idle(sibling) {
                    return Some(sibling);
                }
            }
        }
        self.pick_near(masks, &parts, &allowed, prev, flags)
    }

    /// Picks an idle CPU under the same cache, in the same node, then anywhere.
    fn pick_near(
        &mut self,
        masks: Masks,
        parts: &[Option<u64>; 2],
        allowed: &[u64; 2],
        prev: CpuId,
        flags: u64,
    ) -> Option<CpuId> {
        for part in parts.iter().flatten() {
            let [own, cpus] = *allowed;
            let found = self.pick_idle_in(masks, &[own, cpus, *part], flags);
            if found.is_some() {
                return found;
            }
        }
        self.pick_idle(allowed, prev, flags)
    }
}
