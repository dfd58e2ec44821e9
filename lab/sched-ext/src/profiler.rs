//! What each instruction of a program costs, by the callback in which it runs.
//!
//! ```text
//! profiler.counts(now)?   one branch a callback, where nobody profiles
//! begin                   the time and the caches' counts are noted
//!   entered, step         of each function and instruction
//!   did                   what has happened since the note is of the instruction that runs
//!   ran                   ... but for what instructions take, which is paid for many at once
//! end                     the last ones are paid
//! ```
//!
//! What instructions take by themselves is shared out at the end, by how often each has run: every
//! instruction has the same cost. So the times of all instructions add up to that of all callbacks,
//! to the picosecond.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use warmq_bpf::{Image, KernelTable, Line, To};
use warmq_kernel::{AccessCounts, Context};
use warmq_units::{Duration, Instant};

/// What a program does from a point in time on. Clones count together.
#[derive(Clone, Debug)]
pub struct Profiler {
    from: Instant,
    counted: Rc<RefCell<Counted>>,
}

#[derive(Debug, Default)]
struct Counted {
    object: Option<(Arc<Image>, Arc<KernelTable>)>,
    /// By the function that the kernel calls, and whether it does so under a run queue's lock.
    callbacks: BTreeMap<(u32, bool), Callback>,
    /// One of them runs.
    runs: bool,
}

/// What a callback has done so far.
#[derive(Debug, Default)]
pub(crate) struct Callback {
    times: u64,
    /// How often each function began, by its index.
    entered: Vec<u64>,
    /// By the index in `Image::code`.
    costs: Vec<Cost>,
    /// What instructions took by themselves, all together.
    instructions: Duration,
    all: Duration,
    /// The instruction that runs.
    at: usize,
    /// Up to when all is counted, and what the caches had counted then.
    until: Instant,
    accesses: AccessCounts,
    began: Instant,
    locked: bool,
}

/// What an instruction cost.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    ran: u64,
    /// Without its part of [`Callback::instructions`].
    time: Duration,
    accesses: AccessCounts,
}

/// Watches a callback; nobody does, where it is `()`.
pub(crate) trait Watch {
    const WATCHES: bool;
    /// Whether the callback comes back where others may come in.
    const INTERRUPTS: bool = false;
    fn entered(&mut self, _function: u32) {}
    fn step(&mut self, _instruction: u32) {}
    /// The instruction that runs took what has passed since the last call.
    fn did(&mut self, _: &Context<'_>) {}
    /// Instructions took it by themselves.
    fn ran(&mut self, _: &Context<'_>) {}
}

impl Watch for () {
    const WATCHES: bool = false;
}

impl Watch for Callback {
    const WATCHES: bool = true;

    fn entered(&mut self, function: u32) {
        if let Some(times) = self.entered.get_mut(function as usize) {
            *times += 1;
        }
    }

    fn step(&mut self, instruction: u32) {
        self.at = instruction as usize;
        self.costs[self.at].ran += 1;
    }

    fn did(&mut self, context: &Context<'_>) {
        let accesses = context.accesses();
        let cost = &mut self.costs[self.at];
        cost.time += context.now().since(self.until);
        cost.accesses += accesses.since(&self.accesses);
        self.until = context.now();
        self.accesses = accesses;
    }

    fn ran(&mut self, context: &Context<'_>) {
        self.instructions += context.now().since(self.until);
        self.until = context.now();
    }
}

impl Callback {
    fn new(image: &Image) -> Callback {
        Callback {
            entered: vec![0; image.functions.len()],
            costs: vec![Cost::default(); image.code.len()],
            ..Callback::default()
        }
    }

    /// What is done before the first instruction is of that one.
    fn begin(&mut self, context: &Context<'_>, first: u32) {
        self.times += 1;
        self.locked = context.holds_lock();
        self.at = first as usize;
        self.began = context.now();
        self.until = self.began;
        self.accesses = context.accesses();
    }

    /// The part of [`Callback::instructions`] of each instruction that ran, in order.
    fn shares(&self) -> impl Iterator<Item = (usize, Cost)> {
        let all: u64 = self.costs.iter().map(|cost| cost.ran).sum();
        let up_to = move |ran: u64| {
            let part = u128::from(self.instructions.0) * u128::from(ran);
            Duration((part / u128::from(all.max(1))) as u64)
        };
        let mut before = 0;
        let costs = self.costs.iter().enumerate();
        let costs = costs.filter(|(_, cost)| cost.ran > 0);
        costs.map(move |(at, cost)| {
            let own = up_to(before + cost.ran) - up_to(before);
            before += cost.ran;
            let time = cost.time + own;
            (at, Cost { time, ..*cost })
        })
    }
}

/// What an instruction did in a callback.
#[derive(Clone, Debug)]
pub struct Spent<'p> {
    /// The callback's name in `sched_ext_ops`; `timer NAME` of a function that a timer called, and
    /// the name of a program that something else runs.
    pub callback: &'p str,
    /// Whether it ran under a run queue's lock.
    pub locked: bool,
    /// The function.
    pub function: &'p str,
    /// The line of the source, if the object says so.
    pub line: Option<&'p Line>,
    /// The helper or kfunc that it called, each time.
    pub calls: Option<String>,
    /// How often it ran.
    pub ran: u64,
    /// How long it took.
    pub time: Duration,
    /// Which caches had the lines that it accessed.
    pub accesses: AccessCounts,
}

/// How often a function began in a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered<'p> {
    /// As in [`Spent`].
    pub callback: &'p str,
    /// The function.
    pub function: &'p str,
    /// How often.
    pub times: u64,
}

impl Profiler {
    /// Counts callbacks that begin at `from` or later.
    pub fn starting_at(from: Instant) -> Profiler {
        Profiler {
            from,
            counted: Rc::default(),
        }
    }

    pub(crate) fn counts_of(&self, image: &Arc<Image>, kernel: &Arc<KernelTable>) {
        self.counted.borrow_mut().object = Some((image.clone(), kernel.clone()));
    }

    /// Whether a callback is counted. One within another is part of the line that leads to it.
    pub(crate) fn counts(&self, now: Instant) -> bool {
        now >= self.from && !self.counted.borrow().runs
    }

    /// A callback begins.
    pub(crate) fn begin(&self, function: u32, context: &Context<'_>) -> Callback {
        let key = (function, context.holds_lock());
        let mut counted = self.counted.borrow_mut();
        counted.runs = true;
        let known = counted.callbacks.remove(&key);
        let image = counted.object.as_ref().map(|(image, _)| image);
        let new = || image.map(|image| Callback::new(image)).unwrap_or_default();
        let mut callback = known.unwrap_or_else(new);
        let first = image.and_then(|image| image.functions.get(function as usize));
        callback.begin(context, first.map_or(0, |function| function.start));
        callback
    }

    /// It has ended.
    pub(crate) fn end(&self, function: u32, mut callback: Callback, context: &Context<'_>) {
        callback.all += context.now().since(callback.began);
        let key = (function, callback.locked);
        let mut counted = self.counted.borrow_mut();
        counted.runs = false;
        counted.callbacks.insert(key, callback);
    }

    /// How long all callbacks took.
    pub fn time(&self) -> Duration {
        let counted = self.counted.borrow();
        counted
            .callbacks
            .values()
            .map(|callback| callback.all)
            .sum()
    }

    /// How often each callback was called.
    pub fn callbacks(&self, mut see: impl FnMut(&str, u64)) {
        let counted = self.counted.borrow();
        let Some((image, _)) = &counted.object else {
            return;
        };
        for ((function, _), callback) in &counted.callbacks {
            see(&name(image, *function), callback.times);
        }
    }

    /// How often functions began in each callback.
    pub fn functions(&self, mut see: impl FnMut(Entered<'_>)) {
        let counted = self.counted.borrow();
        let Some((image, _)) = &counted.object else {
            return;
        };
        for ((called, _), callback) in &counted.callbacks {
            let called = name(image, *called);
            let functions = image.functions.iter().zip(&callback.entered);
            for (function, times) in functions.filter(|(_, times)| **times > 0) {
                see(Entered {
                    callback: &called,
                    function: &function.name,
                    times: *times,
                });
            }
        }
    }

    /// What each instruction did that ran.
    pub fn instructions(&self, mut see: impl FnMut(Spent<'_>)) {
        let counted = self.counted.borrow();
        let Some((image, kernel)) = &counted.object else {
            return;
        };
        for ((called, locked), callback) in &counted.callbacks {
            let called = name(image, *called);
            for (at, cost) in callback.shares() {
                let function = image.function_at(at as u32);
                see(Spent {
                    callback: &called,
                    locked: *locked,
                    function: function.map_or("", |function| &function.name),
                    line: image.line_at(at as u32),
                    calls: callee(image, kernel, at),
                    ran: cost.ran,
                    time: cost.time,
                    accesses: cost.accesses,
                });
            }
        }
    }
}

/// What calls a function, as [`Spent`] has it.
fn name(image: &Image, function: u32) -> String {
    let mut callbacks = image.ops.iter().flat_map(|ops| &ops.callbacks);
    if let Some((callback, _)) = callbacks.find(|(_, callback)| **callback == function) {
        return callback.clone();
    }
    let mut programs = image.programs.iter();
    let is_program = programs.any(|program| program.function == function);
    let known = image.functions.get(function as usize);
    let own = known.map_or("", |function| function.name.as_str());
    match is_program {
        true => own.to_owned(),
        false => format!("timer {own}"),
    }
}

/// The helper or kfunc that an instruction calls.
fn callee(image: &Image, kernel: &KernelTable, at: usize) -> Option<String> {
    match image.code[at].to {
        To::Kfunc(kfunc) => image.kfuncs.get(kfunc as usize).cloned(),
        To::Helper(number) => {
            let name = kernel.helper_name(number);
            Some(name.unwrap_or_else(|| format!("helper {number}")))
        }
        _ => None,
    }
}
