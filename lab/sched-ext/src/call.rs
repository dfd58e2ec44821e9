//! Calling the program.

use std::sync::Arc;

use warmq_bpf_run::{
    Access, Callee, Ended, Ending, Guest, Interrupted, Kernel, Program, map_of, offered,
};
use warmq_kernel::Context;

use crate::here::ns;
use crate::kfuncs::{HELPERS, KFUNCS};
use crate::profiler::Watch;
use crate::run_queue::Callbacks;
use crate::state::{During, Here, State};

/// What a call of the program's leads to: a kfunc by its index in `Image::kfuncs`, or none if
/// lab/bpf-run runs it itself.
pub(crate) type Table = Arc<[Option<usize>]>;

/// Which of [`KFUNCS`] the kfuncs of an object are.
pub(crate) fn table(kfuncs: &[String]) -> Table {
    let local = offered().kfuncs;
    let known = |name: &String| KFUNCS.iter().position(|(known, _)| known == name);
    kfuncs
        .iter()
        .map(|name| known(name).filter(|_| !local.contains(name)))
        .collect()
}

/// The kernel around a callback that runs.
struct Caller<'a, 'k, W> {
    code: &'a Code,
    state: &'a mut State,
    context: &'a mut Context<'k>,
    watch: &'a mut W,
}

/// Whom the kernel calls, and with what.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) function: u32,
    args: &'c [u64],
    /// It gets a pointer to its arguments.
    context: bool,
    pub(crate) during: During,
}

impl<'c> Call<'c> {
    pub(crate) fn callback(function: u32, during: During, args: &'c [u64]) -> Call<'c> {
        Call {
            function,
            args,
            context: true,
            during,
        }
    }

    /// Of a timer's function, which takes its arguments as they are.
    pub(crate) fn timer(function: u32, args: &'c [u64]) -> Call<'c> {
        Call {
            context: false,
            ..Call::callback(function, During::Other, args)
        }
    }
}

impl<W: Watch> Kernel for Caller<'_, '_, W> {
    const STEPS: bool = W::WATCHES;
    const INTERRUPTED: bool = W::INTERRUPTS;

    fn entered(&mut self, function: u32) {
        self.watch.entered(function);
    }

    fn step(&mut self, instruction: u32) {
        self.watch.step(instruction);
    }

    fn call(&mut self, callee: Callee, args: [u64; 5], guest: &mut Guest) -> Result<u64, Ending> {
        let run = match callee {
            Callee::Kfunc(which) => {
                let known = self.code.table.get(which as usize).copied().flatten();
                known.map(|at| KFUNCS[at].1)
            }
            Callee::Helper(number) => {
                let known = HELPERS.iter().find(|(known, _)| *known == number);
                known.map(|(_, run)| *run)
            }
        };
        let run = run.ok_or_else(|| Ending::Call(format!("{callee:?}")))?;
        let mut here = Here {
            code: self.code,
            state: self.state,
            guest,
            context: self.context,
        };
        here.pay_instructions();
        self.watch.ran(here.context);
        let answer = run(&mut here, args)?;
        self.watch.did(here.context);
        match &here.state.ejected {
            Some(why) => Err(Ending::Kernel(why.clone())),
            None => Ok(answer),
        }
    }

    fn called(&mut self, callee: Callee, args: &[u64; 5]) {
        let costs = &self.state.costs;
        self.context.spend(match callee {
            Callee::Helper(number) => costs.helper(number, map_of(args[0])),
            Callee::Kfunc(which) => costs.kfunc(which),
        });
        self.watch.did(self.context);
    }

    fn charge(&mut self, address: u64, size: u32, access: Access) {
        self.state.lines.access(self.context, address, size, access);
        self.watch.did(self.context);
    }

    fn now(&self) -> u64 {
        ns(self.context.now())
    }

    fn cpu(&self) -> u32 {
        let cpu = self.state.bound_to.unwrap_or(self.context.cpu());
        cpu.0.into()
    }

    fn turn(&self) -> u32 {
        self.state.cpu(self.context.cpu()).turn
    }

    fn took(&mut self, cpu: u32) {
        let here = self.context.cpu();
        self.state.cpu_mut(here).turn = cpu + 1;
    }

    fn random(&mut self) -> u32 {
        // xorshift64
        let mut number = self.state.random;
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        self.state.random = number;
        (number >> 32) as u32
    }
}

impl Here<'_, '_> {
    /// The CPU spends what the instructions since the last time take.
    pub(crate) fn pay_instructions(&mut self) {
        let all = self.guest.instructions();
        let new = all - std::mem::replace(&mut self.state.paid, all);
        self.context
            .spend(self.state.costs.instructions * new / 100);
    }

    /// Calls a function of the program, and returns what it returns; `None` if that has been
    /// ejected, now or before.
    pub(crate) fn call(&mut self, function: Option<u32>, args: &[u64]) -> Option<u64> {
        self.run(Call::callback(function?, During::Other, args))
    }

    /// Calls a program of kind syscall, for free, with the address of its argument.
    pub(crate) fn call_syscall(&mut self, function: u32, argument: u64) -> Option<u64> {
        let costs = std::mem::take(&mut self.state.costs);
        let returned = self.run(Call::timer(function, &[argument]));
        self.state.costs = costs;
        returned
    }

    /// Makes a call.
    pub(crate) fn run(&mut self, call: Call<'_>) -> Option<u64> {
        if self.state.ejected.is_some() {
            return None;
        }
        let profiler = self.state.profiler.clone();
        let Some(profiler) = profiler.filter(|profiler| profiler.counts(self.now())) else {
            return self.run_watched(call, &mut ());
        };
        let mut callback = profiler.begin(call.function, self.context);
        let returned = self.run_watched(call, &mut callback);
        profiler.end(call.function, callback, self.context);
        returned
    }

    /// A callback that is about to begin, and may be interrupted.
    pub(crate) fn begin(&mut self, call: Call<'_>) -> Interrupted {
        self.state.own.during = call.during;
        self.state.lines.begin();
        self.write_preempt_count();
        self.write_clock();
        let Call { function, args, .. } = call;
        match call.context {
            true => Interrupted::with_context(&self.code.program, self.guest, function, args),
            false => Interrupted::new(&self.code.program, self.guest, function, args),
        }
    }

    /// A callback that was interrupted goes on.
    pub(crate) fn go_on(&mut self, callback: &mut Interrupted) -> Result<Option<u64>, Box<Ended>> {
        let mut caller = Caller {
            code: self.code,
            state: self.state,
            context: self.context,
            watch: &mut Interrupts,
        };
        callback.go_on(&self.code.program, self.guest, &mut caller)
    }

    fn run_watched(&mut self, call: Call<'_>, watch: &mut impl Watch) -> Option<u64> {
        self.state.lines.begin();
        self.write_preempt_count();
        self.write_clock();
        let outer = std::mem::replace(&mut self.state.own.during, call.during);
        self.context.spend(self.state.costs.callback);
        watch.did(self.context);
        let mut caller = Caller {
            code: self.code,
            state: self.state,
            context: self.context,
            watch,
        };
        let (program, Call { function, args, .. }) = (&self.code.program, call);
        let ended = match call.context {
            true => program.run_context(self.guest, &mut caller, function, args),
            false => program.run(self.guest, &mut caller, function, args),
        };
        self.state.own.during = outer;
        self.pay_instructions();
        watch.ran(self.context);
        match ended {
            Ok(value) if self.state.ejected.is_none() => Some(value),
            Ok(_) => None,
            Err(ended) => {
                let text = ended.to_string();
                self.state.ejected = Some(text);
                None
            }
        }
    }

    /// As [`Here::call`], for what runs before the machine does, in no time: `ops.init` and what
    /// user space runs.
    pub(crate) fn call_for_free(&mut self, function: Option<u32>, args: &[u64]) -> Option<u64> {
        let costs = std::mem::take(&mut self.state.costs);
        let returned = self.call(function, args);
        self.state.costs = costs;
        returned
    }
}

/// Interrupts callbacks that may be.
struct Interrupts;

impl Watch for Interrupts {
    const WATCHES: bool = false;
    const INTERRUPTS: bool = true;
}

/// The decoded code of an object, what its kfuncs are, and its callbacks.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) program: Arc<Program>,
    pub(crate) table: Table,
    pub(crate) callbacks: Callbacks,
}
