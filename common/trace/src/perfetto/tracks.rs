//! Slices, instants and counters on tracks of ours, each described before its first event.

use std::collections::BTreeMap;

use warmq_units::{CpuId, Duration, Instant, LockId};

use super::at;
use super::protos::{
    COUNTER, CounterDescriptor, EXPLICIT, INSTANT, SLICE_BEGIN, SLICE_END, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};
use super::sink::Packets;
use crate::Names;

warmq_units::named! {
    /// What tracks are gathered under, in the order in which they are shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum Group {
        Spans = "Shared spans",
        Counters = "Counters",
        Lags = "Lags of groups (virtual ns)",
        Interrupts = "Interrupts",
        Locks = "Spin locks",
        Scheduler = "Scheduler",
        Network = "Network",
    }
}

/// A thread as Perfetto knows it: its process, and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadId {
    pub pid: i32,
    pub tid: i32,
}

/// One track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    /// The phases of a scenario.
    Phases,
    /// The head of a group.
    Group(Group),
    /// A CPU's in a group.
    Cpu(Group, CpuId),
    /// A CPU has one for each lock, as tenures of two locks may overlap without one being inside
    /// the other.
    Lock(CpuId, LockId),
    /// What a thread says, and what it gets said.
    Thread(ThreadId),
    /// A span that is a thread's own, by name. Spans of one name do not overlap there.
    SpanOf(ThreadId, u32),
    /// A span that several tasks share, by name and number.
    Span(u32, u64),
    /// A counter of a scenario.
    Counter(u32),
    /// What a group is owed on a CPU, in virtual ns.
    Owed(CpuId, u32),
}

/// The tracks that were described already, and the names of what numbers stand for.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    // Each with its unique number, from 1 on: 0 is reserved by Perfetto.
    known: BTreeMap<Track, u64>,
    pub names: Names,
}

impl Track {
    fn parent(self) -> Option<Track> {
        match self {
            Track::Phases | Track::Group(_) | Track::Thread(_) => None,
            Track::Cpu(group, _) => Some(Track::Group(group)),
            Track::Lock(..) => Some(Track::Group(Group::Locks)),
            Track::SpanOf(thread, _) => Some(Track::Thread(thread)),
            Track::Span(..) => Some(Track::Group(Group::Spans)),
            Track::Counter(_) => Some(Track::Group(Group::Counters)),
            Track::Owed(..) => Some(Track::Group(Group::Lags)),
        }
    }

    /// Where it stands among its siblings.
    fn rank(self) -> Option<i32> {
        match self {
            Track::Phases => Some(-1),
            Track::Group(group) => Some(group as i32),
            Track::Cpu(_, cpu) => Some(i32::from(cpu.0)),
            Track::Lock(cpu, lock) => Some(i32::from(cpu.0) << 8 | i32::from(lock.0).min(0xff)),
            Track::Thread(_) | Track::Span(..) => None,
            Track::Owed(cpu, group) => {
                i32::try_from(u32::from(cpu.0) << 12 | group.min(0xfff)).ok()
            }
            Track::SpanOf(_, number) | Track::Counter(number) => i32::try_from(number).ok(),
        }
    }
}

impl Tracks {
    pub fn begin(&mut self, to: &mut impl Packets, when: Instant, track: Track, name: String) {
        self.event(to, when, track, (SLICE_BEGIN, Some(name)));
    }

    pub fn end(&mut self, to: &mut impl Packets, when: Instant, track: Track) {
        self.event(to, when, track, (SLICE_END, None));
    }

    pub fn instant(&mut self, to: &mut impl Packets, when: Instant, track: Track, name: String) {
        self.event(to, when, track, (INSTANT, Some(name)));
    }

    /// A counter has this value from `when` on.
    pub fn count(&mut self, to: &mut impl Packets, when: Instant, counter: Track, value: i64) {
        let event = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(self.described(to, counter)),
            name: None,
            counter_value: Some(value),
        };
        write_event(to, when, event);
    }

    /// Writes a tenure of a lock that ended at `when`, and the wait before it, if there was one.
    pub fn tenure(
        &mut self,
        to: &mut impl Packets,
        when: Instant,
        track: Track,
        (waited, held): (Duration, Duration),
    ) {
        let granted = Instant(when.0.saturating_sub(held.0));
        let requested = Instant(granted.0.saturating_sub(waited.0));
        if waited > Duration::ZERO {
            self.begin(to, requested, track, "wait".to_owned());
            self.end(to, granted, track);
        }
        self.begin(to, granted, track, "hold".to_owned());
        self.end(to, when, track);
    }

    fn event(
        &mut self,
        to: &mut impl Packets,
        when: Instant,
        track: Track,
        (kind, name): (i32, Option<String>),
    ) {
        let event = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(self.described(to, track)),
            name,
            counter_value: None,
        };
        write_event(to, when, event);
    }

    /// The number of `track`, which is described if it was not.
    fn described(&mut self, to: &mut impl Packets, track: Track) -> u64 {
        if let Some(uuid) = self.known.get(&track) {
            return *uuid;
        }
        let parent_uuid = track.parent().map(|parent| self.described(to, parent));
        let uuid = self.known.len() as u64 + 1;
        self.known.insert(track, uuid);
        let thread = match track {
            Track::Thread(ThreadId { pid, tid }) => Some(ThreadDescriptor {
                pid: Some(pid),
                tid: Some(tid),
            }),
            _ => None,
        };
        let counter =
            matches!(track, Track::Counter(_) | Track::Owed(..)).then(CounterDescriptor::default);
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: self.name(track),
            parent_uuid,
            thread,
            counter,
            child_ordering: matches!(track, Track::Group(_)).then_some(EXPLICIT),
            sibling_order_rank: track.rank(),
        };
        to.write(TracePacket {
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
        uuid
    }

    fn name(&self, track: Track) -> Option<String> {
        Some(match track {
            Track::Phases => "Phases".to_owned(),
            Track::Group(group) => group.name().to_owned(),
            Track::Cpu(_, cpu) => cpu.to_string(),
            Track::Lock(cpu, lock) => format!("{cpu} {lock}"),
            // It has the thread's.
            Track::Thread(_) => return None,
            Track::SpanOf(_, span) => self.span(span),
            Track::Span(span, number) => format!("{}[{number}]", self.span(span)),
            Track::Counter(counter) => called(&self.names.counters, "counter", counter),
            Track::Owed(cpu, group) => format!("{cpu} group {group}"),
        })
    }

    /// The name of a span.
    pub fn span(&self, span: u32) -> String {
        called(&self.names.spans, "span", span)
    }
}

/// The name of `number` in a list of the trace's header, or what it is with its number.
pub(super) fn called(names: &[String], what: &str, number: u32) -> String {
    let name = names.get(number as usize).cloned();
    name.unwrap_or_else(|| format!("{what} {number}"))
}

fn write_event(to: &mut impl Packets, when: Instant, event: TrackEvent) {
    to.write(TracePacket {
        track_event: Some(event),
        ..at(when)
    });
}
