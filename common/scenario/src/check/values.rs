//! What expressions give for the first and the last task of each table, and for the first and the
//! last round of each repetition. That finds divisions by zero, indexes that nothing has and values
//! out of bounds without playing the scenario; the player meets the rest with their places.

use warmq_units::Duration;

use super::Findings;
use crate::amount::Amount;
use crate::bind::{Bound, Indexes};
use crate::change::{Occurs, Set, Target};
use crate::expr::Expr;
use crate::object::{Arrivals, Object, ObjectId, ObjectKind, Rate, Source, Spinlock, Then};
use crate::place::Place;
use crate::step::{Action, Fragment, Pattern, Reference, Share, Step, TaskReference, Touch};
use crate::task::{TaskKind, TaskKindId};

/// The most memory of one region: 64 GB.
const LARGEST_REGION: u64 = 64 << 30;
/// Picoseconds between two changes: 1 us.
const LEAST_PERIOD: u64 = 1_000_000;
/// The least quota and the bounds of its period that kernels take, in picoseconds: 1 ms, and 1 ms
/// to 1 s (`min_cfs_quota_period` and `max_cfs_quota_period`).
const LEAST_QUOTA: u64 = 1_000_000_000;
const QUOTA_PERIODS: (u64, u64) = (LEAST_QUOTA, 1_000_000_000_000);
/// Weights of cgroups (`cpu.weight`).
const WEIGHTS: (u64, u64) = (1, 10_000);
/// What utilization may be clamped to (`SCHED_CAPACITY_SCALE`).
const UTILIZATIONS: (u64, u64) = (0, 1_024);
/// The payload of the largest UDP datagram over IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;

pub(super) fn check(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    let mut corner = Corner {
        bound,
        findings,
        indexes: Vec::new(),
        last: false,
    };
    for (number, object) in (0..).zip(scenario.objects()) {
        let id = ObjectId(number);
        corner.each(
            bound.objects(id),
            |expr| bound.indexes_of_object(id, expr),
            |site| site.object(object),
        );
    }
    for (number, task) in (0..).zip(scenario.tasks()) {
        let id = TaskKindId(number);
        corner.each(
            bound.tasks(id),
            |expr| bound.indexes_of_task(id, expr),
            |site| site.task(task),
        );
    }
    corner.indexes = Vec::new();
    corner.changes();
}

/// The place in a scenario where expressions are evaluated.
struct Corner<'c, 'f> {
    bound: &'c Bound,
    findings: &'c mut Findings<'f>,
    indexes: Indexes,
    /// Whether repetitions are at their last round, not at their first.
    last: bool,
}

impl Corner<'_, '_> {
    /// Checks the first and the last of `count`.
    fn each(&mut self, count: u64, indexes: impl Fn(u64) -> Indexes, check: impl Fn(&mut Self)) {
        let Some(last) = count.checked_sub(1) else {
            return;
        };
        for (number, is_last) in [(0, false), (last, true)] {
            (self.indexes, self.last) = (indexes(number), is_last);
            check(self);
        }
    }

    fn eval(&mut self, expr: &Expr) -> Option<u64> {
        let value = self.bound.eval(expr, &self.indexes);
        value.map_err(|problem| self.findings.add(*problem)).ok()
    }

    fn all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        exprs.into_iter().for_each(|expr| {
            self.eval(expr);
        });
    }

    /// A value from `least` to `most`; `what` names it.
    fn within(&mut self, expr: &Expr, (least, most): (u64, u64), what: &str) {
        if let Some(value) = self.eval(expr)
            && !(least..=most).contains(&value)
        {
            let help = match most {
                u64::MAX => format!("write a value from {least}"),
                _ => format!("write a value from {least} to {most}"),
            };
            self.findings
                .report(&expr.spot, format!("{what} cannot be {value}"), help);
        }
    }

    fn more_than_zero(&mut self, expr: &Expr, what: &str) {
        self.within(expr, (1, u64::MAX), what);
    }

    /// A change is made by a system call or two, and each is kept until it takes place.
    fn period(&mut self, period: &Expr) {
        if self.eval(period).is_some_and(|every| every < LEAST_PERIOD) {
            let what = "a change cannot take place more than once a microsecond";
            self.findings
                .report(&period.spot, what, "write every = \"1us\" or more");
        }
    }

    fn receive_buffer(&mut self, bytes: Option<&Expr>) {
        if let Some(bytes) = bytes {
            self.more_than_zero(bytes, "a buffer");
        }
    }

    fn object(&mut self, object: &Object) {
        match &object.kind {
            ObjectKind::Region { bytes } => self.region(bytes),
            ObjectKind::Semaphore { initial } => self.all([initial]),
            ObjectKind::Barrier { tasks } => self.more_than_zero(tasks, "the number of tasks"),
            ObjectKind::Queue { holds } => self.more_than_zero(holds, "the room of a queue"),
            ObjectKind::Pipe { buffer } => self.more_than_zero(buffer, "a buffer"),
            ObjectKind::Stream { buffer, nagle, .. } => {
                self.receive_buffer(buffer.as_ref());
                self.all([nagle]);
            }
            ObjectKind::Datagram { buffer } => self.receive_buffer(buffer.as_ref()),
            ObjectKind::Source(source) => self.source(source),
            ObjectKind::Group {
                weight,
                parent,
                quota,
                burst,
                idle: _,
                cpus,
            } => {
                self.within(weight, WEIGHTS, "a weight");
                parent.iter().for_each(|group| self.reference(group));
                if let Some((quota, period)) = quota {
                    self.quota(quota);
                    self.taken_by_kernels(period, QUOTA_PERIODS, "a period", "1 ms to 1 s");
                }
                burst.iter().for_each(|burst| {
                    self.burst(burst, quota.as_ref().map(|(quota, _)| quota));
                });
                cpus.iter().for_each(|place| self.place(place));
            }
            ObjectKind::Autogroup { nice } => self.nice(nice),
            ObjectKind::Spinlock(spinlock) => self.spinlock(spinlock),
            ObjectKind::Mutex | ObjectKind::Condition | ObjectKind::Futex => {}
            ObjectKind::Process | ObjectKind::Timer { .. } | ObjectKind::File { .. } => {}
        }
    }

    fn quota(&mut self, quota: &Expr) {
        self.taken_by_kernels(quota, (LEAST_QUOTA, u64::MAX), "a quota", "1 ms or more");
    }

    fn taken_by_kernels(&mut self, time: &Expr, (least, most): (u64, u64), what: &str, fix: &str) {
        if let Some(ps) = self.eval(time)
            && !(least..=most).contains(&ps)
        {
            let what = format!("{what} of {} is one that no kernel takes", Duration(ps));
            self.findings
                .report(&time.spot, what, format!("write {fix}"));
        }
    }

    /// A burst is at most the quota, as kernels want it (`tg_set_cfs_bandwidth()`).
    fn burst(&mut self, burst: &Expr, quota: Option<&Expr>) {
        let most = quota.and_then(|quota| self.eval(quota));
        if let (Some(burst_ps), Some(most)) = (self.eval(burst), most)
            && burst_ps > most
        {
            let what = "a burst is longer than its quota, which no kernel takes";
            let help = "write one that is at most the quota";
            self.findings.report(&burst.spot, what, help);
        }
    }

    fn spinlock(&mut self, spinlock: &Spinlock) {
        self.more_than_zero(&spinlock.pause, "the time between two looks");
        match &spinlock.then {
            Then::Spin => {}
            Then::Yield(spins) | Then::Futex(spins) => self.all([spins]),
            Then::Sleep { spins, delay, most } => {
                self.all([spins]);
                self.more_than_zero(delay, "a delay");
                if let (Some(first), Some(longest)) = (self.eval(delay), self.eval(most))
                    && first > longest
                {
                    let what = "`delay` is longer than `delay_most` (1s unless said)";
                    let help = "write a shorter one, or a longer `delay_most`";
                    self.findings.report(&delay.spot, what, help);
                }
            }
        }
    }

    fn region(&mut self, bytes: &Expr) {
        match self.eval(bytes) {
            Some(0) => self.findings.report(
                &bytes.spot,
                "a region has at least one byte",
                "write its size",
            ),
            Some(size) if size > LARGEST_REGION => {
                let size = warmq_units::Bytes(size);
                let what = format!("a region of {size} is larger than 64 GB");
                self.findings
                    .report(&bytes.spot, what, "write a smaller size");
            }
            _ => {}
        }
    }

    fn source(&mut self, source: &Source) {
        let what = "the payload of a datagram, in bytes,";
        self.within(&source.bytes, (0, LARGEST_DATAGRAM), what);
        self.reference(&source.to);
        match &source.arrivals {
            Arrivals::Rate(rate) => self.rate(rate),
            Arrivals::Listed(_) => {}
            Arrivals::Every(amount) => {
                self.amount(amount);
                let mut all = amount.expressions().into_iter();
                if all.all(|count| self.bound.constant(count) == Some(0)) {
                    let spot = &amount.expressions()[0].spot;
                    let what = "a source that sends after no time sends without end";
                    self.findings.report(spot, what, "write a longer time");
                }
            }
        }
        self.more_than_zero(&source.burst, "a burst");
        self.all([&source.bytes]);
        if let Some((on, off)) = &source.on_off {
            self.more_than_zero(on, "`on`");
            self.all([off]);
        }
        if let Some((rate, over)) = &source.ramp {
            self.rate(rate);
            self.more_than_zero(over, "`over`");
        }
        source.cpu.iter().for_each(|place| self.place(place));
        if source.echo.is_some() {
            self.numbered(&source.bytes);
        }
        let times = [&source.start, &source.end, &source.packets];
        self.all(times.into_iter().flatten());
    }

    /// A datagram that is answered, and its answer, carry the number of the datagram and the time
    /// at which it was sent.
    fn numbered(&mut self, bytes: &Expr) {
        let what = "the size of what carries its number and time";
        self.within(bytes, (16, LARGEST_DATAGRAM), what);
    }

    fn rate(&mut self, rate: &Rate) {
        self.more_than_zero(&rate.count, "a rate");
    }

    fn task(&mut self, task: &TaskKind) {
        let references = [&task.process, &task.group].into_iter().flatten();
        references.for_each(|reference| self.reference(reference));
        task.nice.iter().for_each(|nice| self.nice(nice));
        task.cpus.iter().for_each(|place| self.place(place));
        task.fragment
            .iter()
            .for_each(|fragment| self.fragment(fragment));
        [&task.start, &task.every]
            .into_iter()
            .flatten()
            .for_each(|amount| self.amount(amount));
        self.all([&task.slice, &task.end, &task.times].into_iter().flatten());
        self.clamped(task);
        self.steps(&task.setup);
        self.steps(&task.body);
    }

    /// A task counts at least as what it counts at most, or less.
    fn clamped(&mut self, task: &TaskKind) {
        let bounds = [&task.uclamp_min, &task.uclamp_max];
        bounds
            .into_iter()
            .flatten()
            .for_each(|util| self.utilization(util));
        let [Some(min), Some(max)] = bounds else {
            return;
        };
        if let (Ok(least), Ok(most)) = (
            self.bound.eval(min, &self.indexes),
            self.bound.eval(max, &self.indexes),
        ) && least > most
        {
            let what = format!("a utilization of {least} at least and {most} at most");
            let help = "write a uclamp_min that is no more than uclamp_max";
            self.findings.report(&min.spot, what, help);
        }
    }

    fn utilization(&mut self, util: &Expr) {
        self.within(util, UTILIZATIONS, "a utilization");
    }

    fn nice(&mut self, expr: &Expr) {
        match self.bound.eval_signed(expr, &self.indexes) {
            Ok(-20..=19) => {}
            Ok(nice) => {
                let what = format!("a nice value cannot be {nice}");
                self.findings
                    .report(&expr.spot, what, "write a value from -20 to 19");
            }
            Err(problem) => self.findings.add(*problem),
        }
    }

    fn fragment(&mut self, expr: &Expr) {
        self.within(
            expr,
            (0, u32::MAX.into()),
            "a fragment, a number of 32 bits,",
        );
    }

    fn place(&mut self, place: &Place) {
        self.all(place.expressions());
        if let Place::Part { part, of } = place
            && let (Some(number), Some(parts)) = (self.eval(part), self.eval(of))
            && number >= parts
        {
            let what = format!("there is no part {number} of {parts}, counted from 0");
            self.findings
                .report(&part.spot, what, "write a smaller number");
        }
    }

    fn amount(&mut self, amount: &Amount) {
        self.all(amount.expressions());
        // The stream does not matter: only whether a draw is possible is asked.
        let mut stream = warmq_units::Seed(0).stream("");
        if let Err(problem) = self.bound.draw(amount, &self.indexes, &mut stream) {
            self.findings.add(*problem);
        }
    }

    fn reference(&mut self, reference: &Reference) {
        if let Err(problem) = self.bound.object_number(reference, &self.indexes) {
            self.findings.add(*problem);
        }
    }

    fn task_reference(&mut self, reference: &TaskReference) {
        if let Err(problem) = self.bound.task_number(reference, &self.indexes) {
            self.findings.add(*problem);
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps.iter().filter(|step| self.bound.holds(step.when)) {
            self.action(&step.action);
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Run(amount) | Action::Spin(amount) | Action::Sleep(amount) => {
                self.amount(amount);
            }
            Action::Timer { timer, period } => {
                self.reference(timer);
                self.amount(period);
            }
            Action::Write { file, bytes } => {
                self.reference(file);
                self.all([bytes]);
            }
            Action::Set(set) => self.set(set),
            Action::Touch(touch) => self.touch(touch),
            Action::Lock(object)
            | Action::Unlock(object)
            | Action::Raise(object)
            | Action::Lower(object) => {
                self.reference(object);
            }
            Action::Barrier(object) | Action::Put(object) | Action::Take(object) => {
                self.reference(object)
            }
            Action::Signal { on, .. } => self.reference(on),
            Action::Wait { on, mutex, timeout } => {
                self.reference(on);
                mutex.iter().for_each(|mutex| self.reference(mutex));
                timeout.iter().for_each(|span| self.amount(span));
            }
            Action::Send { to, bytes } => {
                self.reference(to);
                self.all([bytes]);
            }
            Action::Reply { socket, bytes } => {
                self.reference(socket);
                self.numbered(bytes);
            }
            Action::Receive { from, bytes } => {
                self.reference(from);
                self.all(bytes);
            }
            Action::Spawn(task) | Action::Fork(task) => self.task_reference(task),
            Action::Fragment(Fragment::Number(number)) => self.fragment(number),
            Action::Begin { span, .. } | Action::End(span) => self.all(&span.indexes),
            Action::Count { by, .. } => self.all([by]),
            Action::Repeat {
                times,
                except,
                body,
            } => self.repeat(times, except.as_ref(), body),
            Action::Recorded(row) => self.steps(&row.steps),
            Action::Exit | Action::Yield | Action::Fragment(Fragment::None) => {}
        }
    }

    fn touch(&mut self, touch: &Touch) {
        self.reference(&touch.region);
        self.all(&touch.first);
        match &touch.share {
            Share::Lines(expr) | Share::Bytes(expr) => self.all([expr]),
            Share::Whole => {}
        }
        if let Pattern::Stride(stride) = &touch.pattern {
            self.more_than_zero(stride, "a stride");
        }
        self.within(&touch.write_percent, (0, 100), "a part in percent");
    }

    /// The first or the last round that is not left out.
    fn repeat(&mut self, times: &Expr, except: Option<&Expr>, body: &[Step]) {
        let times = self.eval(times);
        let except = except.and_then(|except| self.eval(except));
        let wanted = |round: &u64| Some(*round) != except;
        let Some(times) = times else { return };
        let round = match self.last {
            true => (times.saturating_sub(2)..times).rev().find(wanted),
            false => (0..times.min(2)).find(wanted),
        };
        if let Some(round) = round {
            self.indexes.push(round);
            self.steps(body);
            self.indexes.pop();
        }
    }

    fn changes(&mut self) {
        let scenario = self.bound.scenario();
        for change in scenario.changes() {
            match &change.occurs {
                Occurs::At(at) => self.all([at]),
                Occurs::Every { period, start, end } => {
                    self.period(period);
                    self.all([start, end].into_iter().flatten());
                }
            }
            match &change.target {
                Target::Task(task) => self.task_reference(task),
                Target::Group(group) => self.reference(group),
                Target::Source(source) => self.reference(source),
                Target::Cpus(place) => self.place(place),
                Target::Tasks(_) | Target::Groups(_) => {}
                Target::Sources(_) | Target::Scheduler => {}
            }
            change.set.iter().for_each(|set| self.set(set));
        }
        self.all(scenario.phases().iter().map(|phase| &phase.at));
    }

    fn set(&mut self, set: &Set) {
        match set {
            Set::Cpus(place) | Set::Arrival(place) => self.place(place),
            Set::Rate(rate) => self.rate(rate),
            Set::Nice(nice) => self.nice(nice),
            Set::Slice(expr) | Set::Burst(expr) => self.all([expr]),
            Set::UclampMin(util) | Set::UclampMax(util) => self.utilization(util),
            Set::Quota(quota) => self.quota(quota),
            Set::Group(group) => self.reference(group),
            Set::Fragment(Fragment::Number(number)) => self.fragment(number),
            Set::Weight(weight) => self.within(weight, WEIGHTS, "a weight"),
            Set::Fragment(Fragment::None) | Set::Policy(_) | Set::Stop | Set::Continue => {}
            Set::Freeze | Set::Thaw | Set::Idle(_) | Set::Online(_) | Set::Scheduler(_) => {}
        }
    }
}
