//! What tasks are like and say: instants on their threads' tracks, and a scenario's spans, counters
//! and phases.

use std::io::Write;

use warmq_units::{Duration, Instant, TaskId};

use super::Perfetto;
use super::tasks::waits_for;
use super::tracks::{Track, called};
use crate::Record;

impl<W: Write> Perfetto<W> {
    /// What a task is like, or is about to wait for.
    pub(super) fn see_task(&mut self, when: Instant, record: &Record) -> bool {
        let (task, name) = match *record {
            Record::Block {
                task,
                cause,
                object,
                ..
            } => (task, waits_for(cause, object)),
            Record::Nice { task, nice } => (task, format!("nice {nice}")),
            Record::Policy {
                task,
                policy,
                priority,
            } => {
                let name = match priority {
                    0 => format!("policy {policy:?}"),
                    _ => format!("policy {policy:?} {priority}"),
                };
                (task, name)
            }
            Record::Slice {
                task,
                slice: Duration::ZERO,
            } => (task, "slice: the scheduler's own".to_owned()),
            Record::Slice { task, slice } => (task, format!("slice {slice}")),
            Record::Group { task, group } => (task, format!("group {group}")),
            Record::KernelThread { task } => (task, "thread of the kernel".to_owned()),
            Record::Fragment {
                task,
                fragment: None,
            } => (task, "no fragment".to_owned()),
            Record::Fragment {
                task,
                fragment: Some((app, number)),
            } => (task, format!("fragment {number} of application {app}")),
            Record::Role {
                task,
                table,
                number,
            } => {
                let table = called(&self.tracks.names.tasks, "table", table);
                (task, format!("{table}[{number}]"))
            }
            Record::Ran { task, total } => (task, format!("ran {total} in all")),
            _ => return false,
        };
        let track = self.thread_track(when, task);
        self.instant(when, track, name);
        true
    }

    /// What a scenario's player says.
    pub(super) fn see_scenario(&mut self, when: Instant, record: &Record) {
        match *record {
            Record::SpanBegin { task, span, number } => {
                self.begin_span(when, task, (span, number), Duration::ZERO);
            }
            Record::SpanBegan {
                task,
                span,
                number,
                ago,
            } => self.begin_span(when, task, (span, number), ago),
            Record::SpanEnd { span, number, .. } => self.end_span(when, span, number),
            Record::Count { counter, total } => {
                let total = i64::try_from(total).unwrap_or(i64::MAX);
                self.tracks
                    .count(&mut self.sink, when, Track::Counter(counter), total);
            }
            Record::Phase { phase } => {
                if std::mem::replace(&mut self.in_phase, true) {
                    self.tracks.end(&mut self.sink, when, Track::Phases);
                }
                let name = called(&self.tracks.names.phases, "phase", phase);
                self.tracks.begin(&mut self.sink, when, Track::Phases, name);
            }
            _ => {}
        }
    }

    /// Begins a span; one that is open begins anew. A slice begins when the span does, but not
    /// before the one before it has ended: slices of a track do not overlap.
    fn begin_span(
        &mut self,
        when: Instant,
        task: TaskId,
        (span, number): (u32, u64),
        ago: Duration,
    ) {
        self.end_span(when, span, number);
        // A span without indexes has the task's number.
        let track = match number == u64::from(task.0) {
            true => {
                self.introduce(when, Some(task));
                Track::SpanOf(self.tasks.thread(task), span)
            }
            false => Track::Span(span, number),
        };
        let name = self.tracks.span(span);
        let ended = self.ended.get(&(span, number)).copied();
        let began = when.before(ago).max(ended.unwrap_or(Instant::START));
        self.open.insert((span, number), track);
        self.tracks.begin(&mut self.sink, began, track, name);
    }

    /// Ends a span; one that began before the trace has no slice that could end.
    fn end_span(&mut self, when: Instant, span: u32, number: u64) {
        if let Some(track) = self.open.remove(&(span, number)) {
            self.tracks.end(&mut self.sink, when, track);
            self.ended.insert((span, number), when);
        }
    }

    fn thread_track(&mut self, when: Instant, task: TaskId) -> Track {
        self.introduce(when, Some(task));
        Track::Thread(self.tasks.thread(task))
    }
}
