//! The receive softirq: polls the cards of a CPU within its budgets (`net_rx_action()`).

use warmq_units::{CpuId, Instant};

use crate::core::Core;
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::interrupt::Softirq;
use crate::network::Packet;
use crate::words::settings::PollTime;
use crate::words::step::{Mode, Polled, Run, Step};

impl Engine {
    /// Takes one packet after another from the poll list up the protocol stack, until the list is
    /// empty or a budget is used up. The remaining packets wait for another run of the softirq.
    pub(crate) fn net_rx(&mut self, cpu: CpuId, run: Run) -> Flow {
        let Some(polled) = self.core.cpu(cpu).poll_list.front().copied() else {
            return Flow::Next;
        };
        let weight = self.core.weight_of(polled);
        if self.core.poll_is_over(run, weight) && self.core.shows_no_more(polled) {
            return self.end_poll(cpu, polled, run, true);
        }
        if self.core.run_is_over(run, weight) {
            self.core.cpu(cpu).softirqs.raise(Softirq::NetRx);
            self.core.record_poll(cpu, run.polled);
            return Flow::Next;
        }
        if run.polled >= weight {
            return self.end_poll(cpu, polled, run, false);
        }
        let Some(packet) = self.core.take_packet(cpu, polled) else {
            let last = self.core.is_last_poll(polled, run.polled);
            return self.end_poll(cpu, polled, run, last);
        };
        self.core.cpu(cpu).stack.push(Step::NetRx(Run {
            packets: run.packets.saturating_sub(1),
            polled: run.polled + 1,
            ..run
        }));
        let sync = self.core.settings.sync_socket_wakeups;
        if let Some(task) = self.accept_packet(cpu, packet) {
            self.core.cpu(cpu).stack.push(Step::Wake { task, sync });
        }
        let took = self.core.times.network_packet * packet.frames();
        Flow::Takes(took, Mode::Softirq)
    }

    /// A poll is over: the next on the list has its turn. After the `last` poll a card leaves the
    /// list and its interrupts are unmasked (`netif_rx_complete()`).
    fn end_poll(&mut self, cpu: CpuId, polled: Polled, run: Run, last: bool) -> Flow {
        let here = self.core.cpu(cpu);
        if last {
            here.poll_list.pop_front();
        } else {
            here.poll_list.rotate_left(1);
        }
        here.stack.push(Step::NetRx(Run { polled: 0, ..run }));
        if last && let Polled::Card(nic) = polled {
            self.core.unmask(nic);
        }
        self.core.record_poll(cpu, run.polled);
        Flow::Next
    }
}

impl Core {
    /// Packets of one poll: the card's own weight, or else the kernel's.
    fn weight_of(&self, polled: Polled) -> u32 {
        let own = match polled {
            Polled::Card(nic) => self.cards[nic.index()].weight(),
            Polled::Backlog => None,
        };
        own.unwrap_or(self.settings.softirqs.weight).max(1)
    }

    /// Whether a poll took all that it may.
    fn poll_is_over(&self, run: Run, weight: u32) -> bool {
        let cut = run.packets == 0 && !self.settings.softirqs.whole_polls;
        run.polled >= weight || run.polled > 0 && cut
    }

    /// Whether the driver looks at the ring after a poll that took all that it may, and finds
    /// nothing there.
    fn shows_no_more(&mut self, polled: Polled) -> bool {
        let Polled::Card(nic) = polled else {
            return false;
        };
        if !self.cards[nic.index()].looks_after_polls() {
            return false;
        }
        self.absorb(nic);
        self.cards[nic.index()].shows_nothing()
    }

    /// Whether a poll that found no more after `taken` packets is the last.
    fn is_last_poll(&self, polled: Polled, taken: u32) -> bool {
        match polled {
            Polled::Card(nic) => {
                let rule = self.settings.e100_last_poll;
                self.cards[nic.index()].is_last_poll(taken, rule)
            }
            Polled::Backlog => true,
        }
    }

    /// Takes the next packet that `polled` shows.
    fn take_packet(&mut self, cpu: CpuId, polled: Polled) -> Option<Packet> {
        match polled {
            Polled::Card(nic) => {
                self.absorb(nic);
                self.cards[nic.index()].take()
            }
            Polled::Backlog => {
                let (nic, packet) = self.cpu(cpu).backlog.pop_front()?;
                self.cards[nic.index()].left_backlog();
                Some(packet)
            }
        }
    }

    /// Whether a run of the receive softirq has used up its packets or its time.
    fn run_is_over(&self, run: Run, weight: u32) -> bool {
        let limits = &self.settings.softirqs;
        let between = run.polled == 0 || run.polled >= weight;
        let late = match limits.packets_time {
            PollTime::After(span) => self.now() - run.since >= span,
            PollTime::Jiffies(most) => {
                let changed = self.jiffies(self.now()) - self.jiffies(run.since);
                between && changed >= u64::from(most)
            }
        };
        let used_up = run.packets == 0 && (between || !limits.whole_polls);
        used_up || late
    }

    /// The jiffies counted by `at`: the first CPU's tick counts them.
    fn jiffies(&self, at: Instant) -> u64 {
        let first = self.cpus[0].first_tick;
        match at < first {
            true => 0,
            false => at.since(first).0 / self.settings.tick.0.max(1) + 1,
        }
    }
}
