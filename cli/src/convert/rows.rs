//! Records as rows of JSON, a line each, named as wprof and others name them: `ts` (seconds since
//! the beginning), `t` (what happened), `cpu`, and tasks as `{"tid", "pid", "comm"}`; the idle task
//! has no `tid`. Interrupts are one row at their end, with `start_ts` and `dur`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};
use warmq_diagnose::count;
use warmq_trace::{
    Board, Comm, Context, Header, Interrupt, Known, Observer, Record, Table, Waking,
};
use warmq_units::{CpuId, Duration, Instant, JSON_SCHEMA, TaskId};

use crate::compare::about;

/// Writes rows. The first error is kept, and nothing is written after it.
pub struct Rows<W: Write> {
    out: W,
    error: Option<io::Error>,
    known: Known,
    board: Board,
    /// The interrupts that each CPU is serving.
    open: Table<CpuId, Vec<Instant>>,
    /// Records that are no row, by what they are.
    left: BTreeMap<String, u64>,
}

impl<W: Write> Rows<W> {
    /// Begins with a row that says what the recording is of.
    pub fn new(out: W, header: &Header) -> Rows<W> {
        let mut rows = Rows {
            out,
            error: None,
            known: Known::default(),
            board: Board::of_a_recording(),
            open: Table::default(),
            left: BTreeMap::new(),
        };
        let mut line = about(header);
        line["t"] = "header".into();
        line["schema"] = JSON_SCHEMA.into();
        line["places"] = json!(header.places);
        line["nodes"] = json!(header.nodes);
        line["some_waited"] = json!(header.pressure.map(seconds));
        rows.line(&line);
        rows
    }

    /// What was written to, and what is not in it: some words each.
    ///
    /// # Errors
    /// The first one that writing met.
    pub fn finish(mut self) -> io::Result<(W, Vec<String>)> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let left = self.left.into_iter();
        let left = left.map(|(name, times)| format!("{} {name} records", count(times)));
        Ok((self.out, left.collect()))
    }

    fn line(&mut self, value: &Value) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{value}").err();
        }
    }

    fn row(&mut self, at: Instant, what: &str, cpu: Option<CpuId>, fields: Value) {
        let mut row = Map::new();
        row.insert("ts".to_owned(), seconds(at.since(Instant::START)));
        row.insert("t".to_owned(), what.into());
        row.extend(cpu.map(|cpu| ("cpu".to_owned(), cpu.0.into())));
        if let Value::Object(fields) = fields {
            row.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.line(&Value::Object(row));
    }

    /// A task; none is the idle task.
    fn task(&self, task: Option<TaskId>) -> Value {
        let Some(task) = task else {
            return json!({ "pid": 0, "comm": "idle" });
        };
        match self.known.who(task) {
            Some(who) => {
                let tid = who.tid.unwrap_or(task.0 + 1);
                json!({ "tid": tid, "pid": who.tgid.unwrap_or(tid), "comm": who.comm.to_string() })
            }
            None => json!({ "tid": task.0 + 1, "pid": task.0 + 1, "comm": "" }),
        }
    }

    fn interrupt(&mut self, at: Instant, cpu: CpuId, interrupt: Interrupt) {
        let began = self.open.touch(cpu).pop();
        let task = self.task(self.board.running(cpu));
        let what = if interrupt.is_softirq() {
            "softirq"
        } else {
            "hardirq"
        };
        let irq = match interrupt {
            Interrupt::Line(line) => Some(line),
            _ => None,
        };
        let fields = json!({
            "task": task,
            "start_ts": began.map(|began| seconds(began.since(Instant::START))),
            "dur": began.map(|began| seconds(at.since(began))),
            "irq": irq,
            "action": format!("{interrupt:?}"),
        });
        self.row(at, what, Some(cpu), fields);
    }
}

/// Seconds, to the nanosecond.
fn seconds(span: Duration) -> Value {
    let ns = span.as_ns();
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
        .parse::<serde_json::Number>()
        .map_or(Value::Null, Value::Number)
}

impl<W: Write> Observer for Rows<W> {
    fn see(&mut self, at: Instant, record: &Record) {
        let before = match *record {
            Record::Switch {
                next: Some(next), ..
            } => (self.board.waking(next), self.board.woken(next)),
            _ => (None, None),
        };
        let old = match *record {
            Record::Renamed { task, .. } => self.known.who(task).map(|who| who.comm),
            _ => None,
        };
        self.known.learn(record);
        self.board.see(at, record);
        match *record {
            Record::InterruptEnter { cpu, .. } => self.open.touch(cpu).push(at),
            Record::InterruptExit { cpu, interrupt } => self.interrupt(at, cpu, interrupt),
            // Tasks have their ids in each row.
            Record::Ids { .. } => {}
            _ => {
                let row = self.of_cpus(record, before);
                match row.or_else(|| self.of_tasks(record, old)) {
                    Some((what, cpu, fields)) => self.row(at, what, cpu, fields),
                    None => self.leave(record),
                }
            }
        }
    }
}

/// What happened, where, and what else is said of it.
type Row = (&'static str, Option<CpuId>, Value);

impl<W: Write> Rows<W> {
    /// What happens on CPUs.
    fn of_cpus(&self, record: &Record, before: (Option<Waking>, Option<Instant>)) -> Option<Row> {
        let of = |task| self.task(Some(task));
        Some(match *record {
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                let (waking, woken) = before;
                let since = |from: Instant| seconds(from.since(Instant::START));
                let fields = json!({
                    "prev": self.task(prev),
                    "next": self.task(next),
                    "prev_state": if prev_runnable { "preempted" } else { "blocked" },
                    "waking_ts": woken.map(since),
                    "waker": waking.and_then(|waking| waking.waker).map(of),
                    "waking_cpu": waking.map(|waking| waking.cpu.0),
                });
                ("switch", Some(cpu), fields)
            }
            Record::Waking {
                cpu,
                waker,
                task,
                context,
                ..
            } => {
                let by = match context {
                    Context::Task => "task",
                    Context::Interrupt => "hardirq",
                    Context::Softirq => "softirq",
                    Context::Unknown => "unknown",
                };
                let fields = json!({ "task": of(task), "waker": waker.map(of), "context": by });
                ("waking", Some(cpu), fields)
            }
            Record::Wakeup {
                waker,
                task,
                target,
            } => {
                let fields = json!({ "task": of(task), "target_cpu": target.0 });
                ("wakeup", Some(waker), fields)
            }
            Record::Migrate { task, from, to } => {
                let fields = json!({ "task": of(task), "from_cpu": from.0 });
                ("migrate", Some(to), fields)
            }
            Record::RescheduleSent { from, to } => {
                let fields = json!({ "kind": "reschedule", "target_cpu": to.0 });
                ("ipi_send", Some(from), fields)
            }
            Record::Idle { cpu, state } => ("idle", Some(cpu), json!({ "state": state })),
            Record::Lost { cpu, events } => ("lost", Some(cpu), json!({ "events": events })),
            Record::Steal { cpu, span } => ("steal", Some(cpu), json!({ "dur": seconds(span) })),
            _ => return None,
        })
    }

    /// What tasks and groups are like.
    fn of_tasks(&self, record: &Record, old: Option<Comm>) -> Option<Row> {
        let of = |task| self.task(Some(task));
        Some(match *record {
            Record::Fork { parent, child, .. } => {
                let fields = json!({ "task": parent.map(of), "child": of(child) });
                ("fork", None, fields)
            }
            Record::Exit { cpu, task } => ("task_exit", Some(cpu), json!({ "task": of(task) })),
            Record::Renamed { task, .. } => {
                let old = old.map(|old| old.to_string());
                let fields = json!({ "task": of(task), "old_comm": old });
                ("task_rename", None, fields)
            }
            Record::Nice { task, nice } => {
                ("nice", None, json!({ "task": of(task), "nice": nice }))
            }
            Record::Group { task, group } => {
                ("group", None, json!({ "task": of(task), "group": group }))
            }
            Record::Cgroup {
                group,
                parent,
                weight,
                name,
            } => {
                let name = name.to_string();
                let fields =
                    json!({ "group": group, "parent": parent, "weight": weight, "name": name });
                ("cgroup", None, fields)
            }
            _ => return None,
        })
    }

    /// Counts what is no row.
    fn leave(&mut self, record: &Record) {
        let text = format!("{record:?}");
        let name = text.split([' ', '{']).next().unwrap_or_default();
        *self.left.entry(name.to_owned()).or_default() += 1;
    }
}
