//! Answers to datagrams: they go back to the remote peer that sent the datagram, over the card by
//! which it came. A peer can measure how long that takes.
//!
//! Purpose: round trips as the other side sees them. A peer that measures begins a span with each
//! datagram that it numbers, and the first answer that is back ends it. A datagram that is lost, or
//! that nobody answers, leaves a span that never ends. Links lose no answers, and what the card does
//! when one has left costs no interrupt, as on streams.

use std::collections::BTreeSet;

use warmq_trace::{Comm, Record};
use warmq_units::{Address, Bytes, CpuId, Instant, TaskId};

use crate::core::{Core, Event};
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::task::{State, TaskStruct};
use crate::words::answer::Origin;
use crate::words::operation::{Remote, Socket};
use crate::words::spec::TaskSpec;
use crate::words::step::Step;

/// What a remote peer measures: from each datagram that it numbers to the first answer.
pub(crate) struct Measured {
    /// The name of its spans, by number in the trace's header.
    span: u32,
    /// Its datagrams without an answer.
    open: BTreeSet<u64>,
}

impl Measured {
    pub(crate) fn new(span: u32) -> Measured {
        Measured {
            span,
            open: BTreeSet::new(),
        }
    }
}

/// What peers that measure are called in traces: as the threads that send for them elsewhere.
const OUTSIDE: &str = "warmq-source";

impl Core {
    /// Gives those who measure a place among the tasks, since the records of spans name one. It is a
    /// task that never runs, has no memory and is unknown to the scheduler. Called when all tasks of
    /// the start are there, so that their numbers are those that they have without it.
    pub(crate) fn name_outside(&mut self) {
        if self.remotes.iter().all(|remote| remote.measured.is_none()) {
            return;
        }
        let mut spec = TaskSpec::kernel_thread("");
        spec.comm = Comm::new(OUTSIDE);
        let nowhere = (Address(0), CpuId(0));
        let mut outside = TaskStruct::new(&spec, None, nowhere.0, nowhere.1, Instant::START);
        outside.state = State::Dead;
        self.outside = Some(TaskId(self.tasks.len() as u32));
        self.tasks.push(outside);
    }

    /// A peer sends its datagram `number`; if it measures, a span begins.
    pub(crate) fn begin_round_trip(&mut self, remote: Remote, number: u64) {
        let (Some(task), Some(measured)) =
            (self.outside, &mut self.remotes[remote.index()].measured)
        else {
            return;
        };
        let span = measured.span;
        measured.open.insert(number);
        self.record(Record::SpanBegin { task, span, number });
    }

    /// An answer is back at the peer that sent the datagram.
    pub(crate) fn answered(&mut self, Origin { remote, number, .. }: Origin) {
        let (Some(task), Some(measured)) =
            (self.outside, &mut self.remotes[remote.index()].measured)
        else {
            return;
        };
        let span = measured.span;
        if measured.open.remove(&number) {
            self.record(Record::SpanEnd { task, span, number });
        }
    }
}

impl Engine {
    /// Copies an answer of `bytes` to a datagram that came to `socket`, and sends it.
    pub(crate) fn answer(&mut self, cpu: CpuId, socket: Socket, to: Origin, bytes: Bytes) -> Flow {
        let endpoint = &mut self.core.endpoints[socket.index()];
        let (buffer, written) = (endpoint.buffer, endpoint.written);
        endpoint.written += bytes.0;
        let copied = self.lines_of(buffer, written, bytes.0);
        let bytes = bytes.0;
        self.copy_datagram(cpu, copied, Step::TransmitAnswer { to, bytes })
    }

    /// Sends an answer that was copied over the link of its card. That enables softirqs again, so that
    /// those that are left over run.
    pub(crate) fn transmit_answer(&mut self, cpu: CpuId, to: Origin, bytes: u64) -> Flow {
        let now = self.core.now();
        let at = self.core.cards[to.nic.index()].send(bytes, now);
        self.core.schedule(at, Event::Answered(to));
        self.run_pending_softirqs(cpu);
        Flow::Next
    }
}
