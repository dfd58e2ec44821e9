//! What an attachment gets of a machine, once: an object may be attached again on it.

use warmq_classes::Urgent;
use warmq_kernel::Attach;
use warmq_machine::CpuPlace;
use warmq_units::{Address, Bytes, CpuId, LockId};

use crate::attach::NotAttached;
use crate::expenses::{Costs, Expenses};
use crate::load::Loaded;

/// A CPU of it.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    pub(crate) place: CpuPlace,
    pub(crate) node: u16,
    /// The lock of its run queue, and where its word is.
    pub(crate) lock: LockId,
    pub(crate) word: Address,
}

/// A machine, and what a program's work takes on it.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) sites: Vec<Site>,
    /// Bytes of a cache line.
    pub(crate) line: u64,
    /// A slice of SCHED_RR, in ticks.
    pub(crate) round_robin: u64,
    pub(crate) costs: Costs,
}

impl Ground {
    pub(crate) fn of(
        attach: &mut Attach<'_>,
        expenses: Expenses,
        loaded: &Loaded,
    ) -> Result<Ground, NotAttached> {
        let costs = Costs::new(attach, expenses, loaded).map_err(NotAttached::Cost)?;
        let sites = (0..attach.cpus()).map(CpuId).map(|cpu| {
            let word = attach.data(Bytes(attach.line()));
            Site {
                place: attach.place(cpu),
                node: attach.node(cpu),
                lock: attach.lock_at("run queue", word),
                word,
            }
        });
        Ok(Ground {
            sites: sites.collect(),
            costs,
            line: attach.line(),
            round_robin: Urgent::slice(attach.tick().as_ns()),
        })
    }

    pub(crate) fn cpus(&self) -> impl Iterator<Item = CpuId> + Clone + use<> {
        (0..self.sites.len() as u16).map(CpuId)
    }

    pub(crate) fn site(&self, cpu: CpuId) -> &Site {
        &self.sites[cpu.index()]
    }
}
