//! The few of Perfetto's messages that are only written, by hand: field numbers and types are
//! those of `protos/perfetto/trace/*.proto` in Perfetto's repository, where they never change.
//!
//! A `oneof` is written as the optional fields that it chooses from: the bytes are the same.

use prost::Message;

use super::messages::{Bundle, ProcessTree, messages};

messages! {
    /// `trace_packet.proto`: one entry of a trace file, which is a sequence of them under tag 1.
    pub(super) TracePacket {
        ftrace_events: optional Bundle = 1,
        process_tree: optional ProcessTree = 2,
        timestamp: optional uint64 = 8,
        trusted_packet_sequence_id: optional uint32 = 10,
        track_event: optional TrackEvent = 11,
        sequence_flags: optional uint32 = 13,
        track_descriptor: optional TrackDescriptor = 60,
    }

    /// `track_event/thread_descriptor.proto`.
    pub(super) ThreadDescriptor {
        pid: optional int32 = 1,
        tid: optional int32 = 2,
    }

    /// `track_event/counter_descriptor.proto`: an empty one makes a track a counter.
    pub(super) CounterDescriptor {}

    /// `track_event/track_descriptor.proto`.
    pub(super) TrackDescriptor {
        uuid: optional uint64 = 1,
        name: optional string = 2,
        thread: optional ThreadDescriptor = 4,
        parent_uuid: optional uint64 = 5,
        counter: optional CounterDescriptor = 8,
        child_ordering: optional int32 = 11,
        sibling_order_rank: optional int32 = 12,
    }

    /// `track_event/track_event.proto`.
    pub(super) TrackEvent {
        r#type: optional int32 = 9,
        track_uuid: optional uint64 = 11,
        name: optional string = 23,
        counter_value: optional int64 = 30,
    }
}

/// `TrackEvent.Type`.
pub(super) const SLICE_BEGIN: i32 = 1;
pub(super) const SLICE_END: i32 = 2;
pub(super) const INSTANT: i32 = 3;
pub(super) const COUNTER: i32 = 4;

/// `TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`.
pub(super) const EXPLICIT: i32 = 3;

/// `TracePacket.SequenceFlags`: this packet refers to nothing before it.
pub(super) const STATE_CLEARED: u32 = 1;
