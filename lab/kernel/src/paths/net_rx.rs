//! The receive softirq: polls the cards of a CPU within its budgets (`net_rx_action()`).

use warmq_units::CpuId;

use crate::core::Softirq;
use crate::paths::{Flow, System};
use crate::words::{Mode, Polled, Run, Step};

impl System {
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
