//! The figures of a scenario, in whatever world it was played.

mod described;
mod figures;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;

use warmq_trace::{Board, Names, Observer, Record, SpinlockNames, Table};
use warmq_units::{Duration, Instant, TaskId};

use crate::quotas::Quotas;
use crate::{Counts, Spans, TaskFigures};

pub use self::described::{Described, MISSING, answers, described, of_one_name};
use self::figures::{Found, us};
use self::window::Window;

/// Collects the figures of a scenario, for the whole measurement and for each phase.
///
/// A span belongs to the window that it ends in; a wait for a CPU, to that in which the task gets
/// it. Only tasks that have a [`Record::Role`] are counted.
#[derive(Clone, Debug)]
pub struct PlayMeter {
    names: Names,
    roles: Table<TaskId, Option<usize>>,
    board: Board,
    /// The spans that are open, by name and number.
    open: BTreeMap<(u32, u64), Instant>,
    /// What each counter has counted.
    totals: Vec<u64>,
    /// What each task says that it has run.
    ran: BTreeMap<TaskId, Duration>,
    quotas: Quotas,
    /// True once a switch was seen: then [`Record::Ran`] is not needed.
    switches: bool,
    whole: Window,
    phase: Option<(usize, Window)>,
    ended: Vec<(usize, BTreeMap<String, f64>)>,
}

impl PlayMeter {
    /// Measures what happens at `from` or later in a scenario of these names.
    pub fn starting_at(names: Names, from: Instant) -> PlayMeter {
        PlayMeter {
            whole: Window::starting_at(from, &names),
            totals: vec![0; names.counters.len()],
            roles: Table::default(),
            board: Board::default(),
            open: BTreeMap::new(),
            ran: BTreeMap::new(),
            quotas: Quotas::new(&names.groups),
            switches: false,
            phase: None,
            ended: Vec::new(),
            names,
        }
    }

    /// The tasks of a scenario's table.
    pub fn tasks_of_table(&self, table: usize) -> impl Iterator<Item = TaskId> {
        let roles = self.roles.iter();
        let tasks = roles.filter(move |(_, role)| **role == Some(table));
        tasks.map(|(task, _)| task)
    }

    /// What `task` did from when the measurement began to `end`; `None` if no record named it.
    pub fn task(&self, task: TaskId, end: Instant) -> Option<TaskFigures> {
        self.whole.tasks.figures(&self.board, task, end)
    }

    /// What every task did from when the measurement began to `end`.
    pub fn tasks(&self, end: Instant) -> impl Iterator<Item = (TaskId, TaskFigures)> {
        self.whole.tasks.all(&self.board, end)
    }

    /// How often things happened since the measurement began.
    pub fn events(&self) -> &Counts {
        &self.whole.events
    }

    /// All figures up to `end`, by name; those of a phase are called `PHASE.NAME`. A figure that
    /// means nothing here (a quantile of no span) is absent.
    pub fn figures(&self, end: Instant) -> BTreeMap<String, f64> {
        let mut figures = self.of(&self.whole, end);
        let last = self.phase.iter();
        let last = last.map(|(phase, window)| (*phase, self.of(window, end)));
        for (phase, of_phase) in self.ended.iter().cloned().chain(last) {
            let Some(phase) = self.names.phases.get(phase) else {
                continue;
            };
            let named = of_phase.into_iter();
            figures.extend(named.map(|(name, value)| (format!("{phase}.{name}"), value)));
        }
        figures
    }

    fn of(&self, window: &Window, end: Instant) -> BTreeMap<String, f64> {
        let mut found = Found {
            seconds: end.since(window.from).as_s_f64(),
            figures: BTreeMap::new(),
        };
        for (index, counter) in self.names.counters_of_steps() {
            let counted = self.totals[index] - window.counts_before[index];
            found.rate(&format!("{counter}_per_second"), counted);
            if *counter == self.names.work {
                found.rate("work_per_second", counted);
            }
        }
        for lock in &self.names.spinlocks {
            let names = SpinlockNames::of(lock);
            let counted = |counter| self.counted_in(window, counter).unwrap_or(0);
            let [taken, contended, spun] = names.all().map(counted);
            found.spinlock(lock, taken, contended, Duration::from_ns(spun));
        }
        for (name, spans) in self.names.spans.iter().zip(&window.spans) {
            found.spans(name, spans);
            found.rate(&format!("{name}_spans_per_second"), spans.count());
        }
        let mut waits = Spans::default();
        for (table, name) in self.names.tasks.iter().enumerate() {
            waits.merge(&window.waits[table]);
            found.spans(&format!("{name}_wait"), &window.waits[table]);
            let tasks = self.tasks_of(table, window, end);
            found.shares(name, &tasks);
            if self.switches {
                found.switches(name, &tasks);
            }
        }
        found.spans("wait", &waits);
        for (table, name) in self.names.groups.iter().enumerate() {
            if let Some(quota) = self.quotas.since(&window.quotas_before, table) {
                found.put(&format!("{name}_nr_periods"), quota.periods as f64);
                found.put(&format!("{name}_nr_throttled"), quota.throttled as f64);
                found.put(&format!("{name}_throttled_time"), us(quota.span));
            }
        }
        if self.switches {
            found.rate("wakeups_per_second", window.events.wakeups);
            let ran: Duration = self.others(window, end).map(|task| task.ran).sum();
            found.put("others_share", 100.0 * ran.as_s_f64() / found.seconds);
        }
        let missing = window.tasks.missing(&self.board, end);
        if missing > Duration::ZERO {
            found.put(MISSING, 100.0 * missing.as_s_f64() / found.seconds);
        }
        if window.lost > 0 {
            found.put("lost_events", window.lost as f64);
        }
        found.figures
    }

    /// What the counter called `name` counted in `window`, if there is one.
    fn counted_in(&self, window: &Window, name: &str) -> Option<u64> {
        let place = self.names.counters.iter().position(|known| known == name)?;
        Some(self.totals[place] - window.counts_before[place])
    }

    /// What each task of a table did in `window`.
    fn tasks_of(&self, table: usize, window: &Window, end: Instant) -> Vec<TaskFigures> {
        let is_whole = window.tasks.missing(&self.board, end) == Duration::ZERO;
        self.tasks_of_table(table)
            .map(|task| {
                let figures = window
                    .tasks
                    .figures(&self.board, task, end)
                    .unwrap_or_default();
                let whole = self.switches && (is_whole || !self.ran.contains_key(&task));
                let ran = match whole {
                    true => figures.ran,
                    false => self.ran_in(task, window),
                };
                TaskFigures { ran, ..figures }
            })
            .collect()
    }

    /// What tasks did that are none of the scenario's.
    fn others<'w>(
        &'w self,
        window: &'w Window,
        end: Instant,
    ) -> impl Iterator<Item = TaskFigures> + 'w {
        let all = window.tasks.all(&self.board, end);
        let others = all.filter(|(task, _)| self.roles.get(*task).copied().flatten().is_none());
        others.map(|(_, figures)| figures)
    }

    fn ran_in(&self, task: TaskId, window: &Window) -> Duration {
        let of = |ran: &BTreeMap<TaskId, Duration>| ran.get(&task).copied().unwrap_or_default();
        of(&self.ran).saturating_sub(of(&window.ran_before))
    }

    /// Of a phase that begins before the measurement, only what is measured counts.
    fn begin_phase(&mut self, at: Instant, phase: usize) {
        if let Some((before, window)) = self.phase.take()
            && at > window.from
        {
            let figures = self.of(&window, at);
            self.ended.push((before, figures));
        }
        let from = at.max(self.whole.from);
        let window = Window {
            counts_before: self.totals.clone(),
            ran_before: self.ran.clone(),
            quotas_before: self.quotas.now().clone(),
            ..Window::starting_at(from, &self.names)
        };
        self.phase = Some((phase, window));
    }

    fn all_windows(&mut self) -> impl Iterator<Item = &mut Window> {
        let phase = self.phase.iter_mut().map(|(_, window)| window);
        std::iter::once(&mut self.whole).chain(phase)
    }

    fn windows(&mut self, at: Instant) -> impl Iterator<Item = &mut Window> {
        self.all_windows().filter(move |window| at >= window.from)
    }

    /// The windows that totals of this time are what they begin with.
    fn not_begun(&mut self, at: Instant) -> impl Iterator<Item = &mut Window> {
        self.all_windows().filter(move |window| at <= window.from)
    }

    fn span_ends(&mut self, at: Instant, span: u32, number: u64) {
        let Some(begun) = self.open.remove(&(span, number)) else {
            return;
        };
        for window in self.windows(at) {
            if let Some(spans) = window.spans.get_mut(span as usize) {
                spans.add(at.since(begun));
            }
        }
    }

    /// `task`, which was woken then, gets a CPU.
    fn runs(&mut self, at: Instant, (task, woken): (TaskId, Instant)) {
        let Some(table) = self.roles.get(task).copied().flatten() else {
            return;
        };
        for window in self.windows(at) {
            if let Some(waits) = window.waits.get_mut(table) {
                waits.add(at.since(woken));
            }
        }
    }

    /// A count that is reported before the measurement begins is what it begins with.
    fn count(&mut self, at: Instant, counter: usize, total: u64) {
        if let Some(known) = self.totals.get_mut(counter) {
            *known = total.max(*known);
            let known = *known;
            for window in self.not_begun(at) {
                window.counts_before[counter] = known;
            }
        }
    }
}

impl Observer for PlayMeter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        let ended = self.board.see(at, record);
        let phase = self.phase.iter_mut().map(|(_, window)| window);
        for window in std::iter::once(&mut self.whole).chain(phase) {
            window.tasks.see(at, record, ended);
            window.events.see(at, record);
        }
        if let Some(woken) = self.board.served() {
            self.runs(at, woken);
        }
        if self.quotas.see(record) {
            let now = self.quotas.now().clone();
            self.not_begun(at)
                .for_each(|window| window.quotas_before.clone_from(&now));
        }
        match *record {
            Record::Role { task, table, .. } => {
                *self.roles.touch(task) = Some(table as usize);
            }
            Record::SpanBegin { span, number, .. } => {
                self.open.insert((span, number), at);
            }
            Record::SpanBegan {
                span, number, ago, ..
            } => {
                self.open.insert((span, number), at.before(ago));
            }
            Record::SpanEnd { span, number, .. } => self.span_ends(at, span, number),
            Record::Switch { .. } => self.switches = true,
            Record::Count { counter, total } => self.count(at, counter as usize, total),
            Record::Phase { phase } => self.begin_phase(at, phase as usize),
            Record::Ran { task, total } => {
                self.ran.insert(task, total);
                for window in self.not_begun(at) {
                    window.ran_before.insert(task, total);
                }
            }
            Record::Lost { events, .. } => {
                let lost = events.max(1);
                self.windows(at).for_each(|window| window.lost += lost);
            }
            _ => {}
        }
    }
}
