//! Balancing: a CPU pulls tasks from the busiest CPU of the busiest group, in intervals, and when
//! it is about to idle (`sched_balance_rq()`, `sched_balance_domains()`). An idle CPU whose tick is
//! stopped does so when a busy one asks for it (`idle.rs`).

use warmq_kernel::{Balance, Context};
use warmq_units::CpuId;

use super::active::Push;
use super::busiest::Busiest;
use super::detach::Offer;
use super::domains::BUSY_FACTOR;
use super::standing::Amount;
use super::state::State;

/// What `look` has found, for `pull_from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pull {
    /// The CPU that balances: it looked, or an idle one looked for it.
    pub(super) here: CpuId,
    /// The CPU that gets the tasks: that one, or another of its group.
    pub(super) to: CpuId,
    pub(super) domain: usize,
    pub(super) amount: Amount,
    pub(super) idleness: Idleness,
    /// CPUs of the own group for which tasks were looked for already.
    pub(super) tried: Vec<CpuId>,
}

/// How idle a CPU is that balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    Busy,
    Idle,
    /// It is about to be.
    NewlyIdle,
}

/// A pass over the domains of a CPU, from the smallest up, and then over those of other CPUs that
/// idle. Each pull interrupts it.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    of: CpuId,
    idleness: Idleness,
    /// The domain that comes next.
    domain: usize,
    /// Idle CPUs for which this one balances afterwards, the next one last.
    pub(super) others: Vec<CpuId>,
    /// It is for all CPUs that idle.
    pub(super) for_all: bool,
    /// Tasks that may not run where they were to go are still to be pulled to another CPU of the
    /// group.
    again: Option<(CpuId, Pull)>,
}

impl Pass {
    pub(super) fn new(of: CpuId, idleness: Idleness) -> Pass {
        Pass {
            of,
            idleness,
            domain: 0,
            others: Vec::new(),
            for_all: false,
            again: None,
        }
    }

    /// It begins with the first of the others.
    pub(super) fn leave_out_own(&mut self) {
        self.domain = usize::MAX;
    }
}

/// An attempt that pulled nothing from a CPU.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) from: CpuId,
    pub(super) pull: Pull,
    /// What the queue could give (`LBF_*`).
    pub(super) held: bool,
    pub(super) all_pinned: bool,
}

/// How an attempt ended that has nothing to pull.
enum Nothing {
    /// There is a CPU to pull from, and it has nothing that may come now.
    Failed(Failed),
    /// There is no imbalance; or only one of tasks that may not run here.
    Balanced { all_pinned: bool },
}

impl State {
    /// The time of `cpu` in ticks (`jiffies`).
    pub(super) fn jiffies(&self, cpu: CpuId) -> i64 {
        self.cpu(cpu).clock / self.rules.tick
    }

    /// Looks for a CPU to pull from. What comes after that, comes when it is called again.
    pub(super) fn look(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let here = context.cpu();
        let found = match when {
            Balance::NewlyIdle => self.look_newly_idle(context),
            Balance::Idle => self.look_in_pass(context, Idleness::Idle),
            Balance::Tick => self.look_in_pass(context, Idleness::Busy),
        };
        found.map(|(from, pull)| {
            self.cpu_mut(here).pull = Some(pull);
            from
        })
    }

    /// Goes on with the pass that a pull interrupted, or begins one (`sched_balance_softirq()`).
    fn look_in_pass(
        &mut self,
        context: &mut Context<'_>,
        idleness: Idleness,
    ) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let mut pass = match self.cpu_mut(here).pass.take() {
            Some(pass) => pass,
            None => self.begin_pass(context, idleness)?,
        };
        loop {
            let found = self.go_on(context, &mut pass);
            if found.is_some() {
                self.cpu_mut(here).pass = Some(pass);
                return found;
            }
            let Some(next) = pass.others.pop() else {
                if pass.for_all {
                    self.find_next_idle(context);
                }
                return None;
            };
            if !self.is_idle(here) {
                // It has a task itself: whoever is woken next does the rest.
                return None;
            }
            self.sync(context, next);
            pass = Pass {
                others: pass.others,
                for_all: pass.for_all,
                ..Pass::new(next, Idleness::Idle)
            };
            if !self.is_due(next) {
                pass.leave_out_own();
            }
        }
    }

    fn begin_pass(&mut self, context: &mut Context<'_>, idleness: Idleness) -> Option<Pass> {
        let here = context.cpu();
        let kick = std::mem::take(&mut self.cpu_mut(here).kick);
        if idleness == Idleness::Idle && kick.is_any() {
            return self.begin_for_all_idle(context, kick);
        }
        self.decay_blocked(here);
        Some(Pass::new(here, idleness))
    }

    /// Balances each domain that is due, up to the first for which it is another CPU's turn
    /// (`sched_balance_domains()`).
    fn go_on(&mut self, context: &mut Context<'_>, pass: &mut Pass) -> Option<(CpuId, Pull)> {
        if pass.domain == usize::MAX {
            return None;
        }
        if let Some((from, pull)) = pass.again.take() {
            let offer = self.offer(context, from, &pull);
            if !offer.tasks.is_empty() {
                return Some((from, pull));
            }
        }
        if pass.domain > 0 {
            pass.idleness = match self.is_idle(pass.of) {
                true => Idleness::Idle,
                false => Idleness::Busy,
            };
        }
        let (of, now) = (pass.of, self.jiffies(pass.of));
        while pass.domain < self.cpu(of).domains.len() {
            let domain = pass.domain;
            pass.domain += 1;
            let busy = self.is_busy(of, pass.idleness);
            if now < self.cpu(of).domains[domain].last_balance + self.interval(of, domain, busy) {
                continue;
            }
            let (found, goes_on) = self.balance_in(context, (of, domain), pass.idleness);
            self.cpu_mut(of).domains[domain].last_balance = now;
            if found.is_some() {
                return found;
            }
            if !goes_on {
                break;
            }
        }
        self.end_pass(pass);
        None
    }

    /// When to balance next is known once all domains were visited.
    fn end_pass(&mut self, pass: &Pass) {
        let (of, visited) = (pass.of, pass.domain);
        self.forget_costs(of, visited);
        let busy = self.is_busy(of, pass.idleness);
        let due = |at: usize| self.cpu(of).domains[at].last_balance + self.interval(of, at, busy);
        if let Some(next) = (0..visited).map(due).min() {
            self.cpu_mut(of).next_balance = next;
        }
    }

    /// Whether a CPU balances as rarely as one that has better to do: not if it idles, nor if it
    /// runs but SCHED_IDLE tasks.
    fn is_busy(&self, cpu: CpuId, idleness: Idleness) -> bool {
        idleness != Idleness::Idle && !self.has_background_only(cpu)
    }

    /// How often a domain is balanced, in jiffies (`get_sd_balance_interval()`).
    pub(super) fn interval(&self, cpu: CpuId, domain: usize, busy: bool) -> i64 {
        let interval = self.cpu(cpu).domains[domain].interval;
        let hz = self.rules.hz();
        let jiffies = |ms: i64| (ms * hz + 999) / 1_000;
        let jiffies = match busy {
            true => jiffies(interval * BUSY_FACTOR) - 1,
            false => jiffies(interval),
        };
        let most = hz * self.cpus.len() as i64 / 10;
        jiffies.clamp(1, most.max(1))
    }

    /// One CPU of each group balances for it (`should_we_balance()`): above cores, the first on an
    /// idle core; then the first that is idle, or the first.
    fn is_our_turn(&self, context: &Context<'_>, here: CpuId, domain: usize) -> bool {
        let domain = &self.cpu(here).domains[domain];
        let own = domain.groups[0].balances.iter().copied();
        let own = || own.clone().filter(|cpu| context.is_online(*cpu));
        let mut idle = own().filter(|cpu| self.is_idle(*cpu));
        let first_idle = idle.clone().next();
        let on_idle_core = match domain.level.shares_core {
            true => None,
            false => idle.find(|cpu| self.has_idle_core(*cpu)),
        };
        on_idle_core.or(first_idle).or(own().next()) == Some(here)
    }

    /// Whether this CPU may balance again by its own clock (`rq->next_balance`).
    pub(super) fn is_due(&self, cpu: CpuId) -> bool {
        self.jiffies(cpu) >= self.cpu(cpu).next_balance
    }

    /// What can be pulled in a domain, and whether larger ones come next (`sched_balance_rq()`).
    pub(super) fn balance_in(
        &mut self,
        context: &mut Context<'_>,
        (here, domain): (CpuId, usize),
        idleness: Idleness,
    ) -> (Option<(CpuId, Pull)>, bool) {
        let is_our_turn =
            idleness == Idleness::NewlyIdle || self.is_our_turn(context, here, domain);
        let nothing = Nothing::Balanced { all_pinned: false };
        let found = match is_our_turn && self.may_balance_nodes(context, here, domain) {
            true => self.search(context, here, domain, idleness),
            false => Err(nothing),
        };
        match found {
            Ok(found) => return (Some(found), true),
            Err(Nothing::Failed(failed)) => self.pulled_nothing(context, failed),
            Err(Nothing::Balanced { all_pinned }) => {
                self.is_balanced((here, domain), idleness, all_pinned);
            }
        }
        (None, is_our_turn)
    }

    /// Whether nobody balances domains of several nodes now (`sched_balance_running`).
    fn may_balance_nodes(&self, context: &Context<'_>, here: CpuId, domain: usize) -> bool {
        let spans_nodes = self.cpu(here).domains[domain].level.spans_nodes;
        !spans_nodes || self.nodes_balanced_until <= context.now()
    }

    /// What can be pulled in a domain. CPUs whose tasks may all not run here are left out, and it
    /// looks again.
    fn search(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        domain: usize,
        idleness: Idleness,
    ) -> Result<(CpuId, Pull), Nothing> {
        if idleness != Idleness::NewlyIdle {
            self.update_scanned(context, here, domain);
        }
        let mut without = Vec::new();
        while let Some(busiest) = self.busiest(context, (here, domain), idleness, &without) {
            if self.cpu(here).domains[domain].level.spans_nodes {
                self.nodes_balanced_until = context.now();
            }
            let Busiest { cpu: from, amount } = busiest;
            let mut pull = Pull {
                here,
                to: here,
                domain,
                amount,
                idleness,
                tried: Vec::new(),
            };
            let failed = |pull: Pull, held: bool, all_pinned: bool| {
                Nothing::Failed(Failed {
                    from,
                    pull,
                    held,
                    all_pinned,
                })
            };
            if self.nr_running(from) <= 1 {
                return Err(failed(pull, false, true));
            }
            let mut offer = self.offer(context, from, &pull);
            // What may not run here goes to another CPU of the group for which this one balances.
            while offer.tasks.is_empty()
                && let Some(other) = offer.elsewhere
            {
                pull.go_elsewhere(other);
                let flags = (offer.held, offer.all_pinned, offer.some_pinned);
                offer = self.offer(context, from, &pull).with(flags);
            }
            if !offer.tasks.is_empty() {
                return Ok((from, pull));
            }
            self.put_behind(from, &offer.refused);
            self.note_pinned((here, domain), &offer);
            if !offer.all_pinned {
                return Err(failed(pull, offer.held, false));
            }
            without.push(from);
        }
        Err(Nothing::Balanced {
            all_pinned: !without.is_empty(),
        })
    }

    /// The next larger domain learns that tasks could not be moved which may not run here.
    pub(super) fn note_pinned(&mut self, (here, domain): (CpuId, usize), offer: &Offer) {
        if offer.some_pinned && !offer.left.is_nothing() {
            self.set_imbalanced(here, domain, true);
        }
    }

    fn set_imbalanced(&mut self, here: CpuId, domain: usize, imbalanced: bool) {
        let above = self.cpu(here).domains.get(domain + 1);
        if let Some(group) = above.map(|above| above.groups[0].capacity) {
            self.capacities[group].imbalanced = imbalanced;
        }
    }

    /// There was nothing to pull; the next attempt comes later, unless the CPU was about to idle,
    /// which it may be very often.
    fn is_balanced(
        &mut self,
        (here, domain): (CpuId, usize),
        idleness: Idleness,
        all_pinned: bool,
    ) {
        if !all_pinned {
            self.set_imbalanced(here, domain, false);
        }
        let state = &mut self.cpu_mut(here).domains[domain];
        state.failed = 0;
        if idleness != Idleness::NewlyIdle {
            state.slacken(all_pinned);
        }
    }

    /// Counts a failed attempt, unless a task was held for the sake of a cache, and has the running
    /// task pushed here, if that is what is left to do.
    fn pulled_nothing(&mut self, context: &mut Context<'_>, failed: Failed) {
        let (here, domain) = (failed.pull.here, failed.pull.domain);
        // A task that needs a larger CPU says nothing of how busy the domain is.
        let misfit = matches!(failed.pull.amount, Amount::Misfit(_));
        let counts = failed.pull.idleness != Idleness::NewlyIdle && !misfit;
        let state = &mut self.cpu_mut(here).domains[domain];
        state.failed += u32::from(counts && !failed.held);
        let pushes = self.needs_push(&failed);
        let is_pinned = pushes && !self.push_if_allowed(context, &failed);
        let state = &mut self.cpu_mut(here).domains[domain];
        match is_pinned {
            true if counts => state.slacken(failed.all_pinned),
            true => {}
            false => state.interval = state.least_interval(),
        }
    }

    /// Has the oldest task of the CPU that was to be pulled from pushed here by its migration
    /// thread; false if the one that runs may not come.
    fn push_if_allowed(&mut self, context: &mut Context<'_>, failed: &Failed) -> bool {
        let (from, to) = (failed.from, failed.pull.here);
        if let Some(running) = self.cpu(from).current
            && !context.task(running).may_run_on(to)
        {
            return false;
        }
        if self.cpu(from).push.is_none() {
            let drawn = matches!(failed.pull.amount, Amount::Drawn(_));
            self.cpu_mut(from).push = Some(Push { to, drawn });
            context.raise_balance(from);
        }
        true
    }

    /// Pulls what `look` has found, under the locks of both CPUs.
    pub(super) fn pull_from(&mut self, context: &mut Context<'_>, from: CpuId) {
        let here = context.cpu();
        let Some(pull) = self.cpu_mut(here).pull.take() else {
            return;
        };
        self.sync(context, pull.to);
        let offer = self.offer(context, from, &pull);
        self.detach(context, &offer, &pull);
        self.put_behind(from, &offer.refused);
        let of = (pull.here, pull.domain);
        if let Some(other) = offer.elsewhere.filter(|_| !offer.left.is_nothing()) {
            let mut next = pull.clone();
            next.amount = offer.left;
            next.go_elsewhere(other);
            if let Some(pass) = &mut self.cpu_mut(here).pass {
                pass.again = Some((from, next));
            }
        } else {
            self.note_pinned(of, &offer);
        }
        if !offer.tasks.is_empty() {
            let domain = &mut self.cpu_mut(of.0).domains[of.1];
            domain.failed = 0;
            domain.interval = domain.least_interval();
        } else {
            let (held, all_pinned) = (offer.held, offer.all_pinned);
            self.pulled_nothing(
                context,
                Failed {
                    from,
                    pull,
                    held,
                    all_pinned,
                },
            );
        }
    }
}

impl Pull {
    /// It is for another CPU of the group from now on (`LBF_DST_PINNED`).
    fn go_elsewhere(&mut self, other: CpuId) {
        self.tried.push(self.to);
        self.to = other;
    }
}
