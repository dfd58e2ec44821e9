//! Packets on their way to a card, into its ring, and to a CPU's attention.

use warmq_units::CpuId;

use crate::core::{Softirq, Vector};
use crate::paths::System;
use crate::words::{Nic, Polled};

impl System {
    /// A card with a model may have packets to report: if so, it raises an interrupt.
    pub(crate) fn card_looks(&mut self, nic: Nic) {
        let now = self.core.now();
        if !self.core.net.cards[nic].looks(now) {
            return;
        }
        self.core.absorb(nic);
        let card = &self.core.net.cards[nic];
        if !card.is_armed() || card.shows_nothing() {
            return self.core.look_in_time(nic);
        }
        let (next, cpu) = self.core.next_turn(nic);
        let cpu = self.core.online_or_first(cpu);
        self.core.net.cards[nic].raise(cpu, next);
        self.interrupt(cpu, Vector::Network(nic));
    }

    /// The interrupt handler of a card on `cpu`, if the card has raised one there.
    pub(crate) fn interrupted_by(&mut self, cpu: CpuId, nic: Nic) {
        let card = &mut self.core.net.cards[nic];
        if !card.begins_polling(cpu) {
            return;
        }
        let polled = match card.has_backlog() {
            true => {
                self.core.fill_backlog(cpu, nic);
                Polled::Backlog
            }
            false => Polled::Card(nic),
        };
        let here = self.core.cpu(cpu);
        here.will_poll(polled);
        here.softirqs.raise(Softirq::NetRx);
    }
}
