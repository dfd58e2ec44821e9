//! Slices and instants on tracks of ours, each described before its first event.

use std::collections::BTreeSet;

use warmq_units::{CpuId, Duration, Instant, LockId};

use super::at;
use super::protos::{
    EXPLICIT, INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackDescriptor, TrackEvent,
};
use super::sink::Packets;

/// The group that a track belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Interrupts,
    Locks,
    Scheduler,
}

/// One track: a CPU's in its group; a CPU has one for each lock, as tenures of two locks may
/// overlap without one being inside the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Track {
    group: Group,
    cpu: CpuId,
    lock: Option<LockId>,
}

/// The groups and tracks that were described already.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    groups: BTreeSet<Group>,
    tracks: BTreeSet<Track>,
}

impl Group {
    pub fn of(self, cpu: CpuId) -> Track {
        Track {
            group: self,
            cpu,
            lock: None,
        }
    }

    pub fn of_lock(self, cpu: CpuId, lock: LockId) -> Track {
        Track {
            group: self,
            cpu,
            lock: Some(lock),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Group::Interrupts => "Interrupts",
            Group::Locks => "Spin locks",
            Group::Scheduler => "Scheduler",
        }
    }

    /// Unique among groups and tracks; 0 is reserved by Perfetto.
    fn uuid(self) -> u64 {
        (self as u64 + 1) << 48
    }
}

impl Track {
    fn uuid(self) -> u64 {
        let lock = self.lock.map_or(0, |lock| u64::from(lock.0) + 1);
        self.group.uuid() + (lock << 24) + u64::from(self.cpu.0) + 1
    }

    fn name(self) -> String {
        match self.lock {
            None => self.cpu.to_string(),
            Some(lock) => format!("{} {lock}", self.cpu),
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
        self.describe(to, track);
        let event = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(track.uuid()),
            name,
        };
        to.write(TracePacket {
            track_event: Some(event),
            ..at(when)
        });
    }

    fn describe(&mut self, to: &mut impl Packets, track: Track) {
        let group = track.group;
        if self.groups.insert(group) {
            write(
                to,
                TrackDescriptor {
                    uuid: Some(group.uuid()),
                    name: Some(group.name().to_owned()),
                    child_ordering: Some(EXPLICIT),
                    sibling_order_rank: Some(group as i32),
                    parent_uuid: None,
                },
            );
        }
        if self.tracks.insert(track) {
            let lock = track.lock.map_or(0, |lock| i32::from(lock.0));
            write(
                to,
                TrackDescriptor {
                    uuid: Some(track.uuid()),
                    name: Some(track.name()),
                    parent_uuid: Some(group.uuid()),
                    sibling_order_rank: Some(i32::from(track.cpu.0) << 8 | lock.min(0xff)),
                    child_ordering: None,
                },
            );
        }
    }
}

fn write(to: &mut impl Packets, descriptor: TrackDescriptor) {
    to.write(TracePacket {
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    });
}
