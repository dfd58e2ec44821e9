//! The few of Perfetto's messages that are only written, by hand: field numbers and types are
//! those of `protos/perfetto/trace/*.proto` in Perfetto's repository, where they never change.
//!
//! A `oneof` is written as the optional fields that it chooses from: the bytes are the same.

use prost::Message;

use super::messages::{Bundle, ProcessTree};

/// `trace_packet.proto`: one entry of a trace file, which is a sequence of them under tag 1.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<Bundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// `track_event/thread_descriptor.proto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
}

/// `track_event/counter_descriptor.proto`: an empty one makes a track a counter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {}

/// `track_event/track_descriptor.proto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// `track_event/track_event.proto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
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
