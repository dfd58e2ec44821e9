//! What a CPU polls, and when a run of the receive softirq is over.

use warmq_units::{CpuId, Instant};

use crate::core::Core;
use crate::core::net::Packet;
use crate::words::{PollTime, Polled, Run};

impl Core {
    /// Packets of one poll: the card's own weight, or else the kernel's.
    pub(crate) fn weight_of(&self, polled: Polled) -> u32 {
        let own = match polled {
            Polled::Card(nic) => self.net.cards[nic].weight(),
            Polled::Backlog => None,
        };
        own.unwrap_or(self.settings.softirqs.weight).max(1)
    }

    /// Whether a poll took all that it may.
    pub(crate) fn poll_is_over(&self, run: Run, weight: u32) -> bool {
        let cut = run.packets == 0 && !self.settings.softirqs.whole_polls;
        run.polled >= weight || run.polled > 0 && cut
    }

    /// Whether the driver looks at the ring after a poll that took all that it may, and finds
    /// nothing there.
    pub(crate) fn shows_no_more(&mut self, polled: Polled) -> bool {
        let Polled::Card(nic) = polled else {
            return false;
        };
        if !self.net.cards[nic].looks_after_polls() {
            return false;
        }
        self.absorb(nic);
        self.net.cards[nic].shows_nothing()
    }

    /// Whether a poll that found no more after `taken` packets is the last.
    pub(crate) fn is_last_poll(&self, polled: Polled, taken: u32) -> bool {
        match polled {
            Polled::Card(nic) => {
                let rule = self.settings.e100_last_poll;
                self.net.cards[nic].is_last_poll(taken, rule)
            }
            Polled::Backlog => true,
        }
    }

    /// Takes the next packet that `polled` shows.
    pub(crate) fn take_packet(&mut self, cpu: CpuId, polled: Polled) -> Option<Packet> {
        match polled {
            Polled::Card(nic) => {
                self.absorb(nic);
                self.net.cards[nic].take()
            }
            Polled::Backlog => {
                let (nic, packet) = self.cpu(cpu).backlog.pop_front()?;
                self.net.cards[nic].left_backlog();
                Some(packet)
            }
        }
    }

    /// Whether a run of the receive softirq has used up its packets or its time.
    pub(crate) fn run_is_over(&self, run: Run, weight: u32) -> bool {
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
