//! Calling the program.

use std::sync::Arc;

use warmq_bpf_run::{Access, Callee, Ended, Ending, Guest, Kernel, Program, offered};
use warmq_kernel::Context;

use crate::here::ns;
use crate::kfuncs::{HELPERS, KFUNCS};
use crate::state::{During, Here, State};

/// What a call of the program's leads to: a kfunc by its index in `Image::kfuncs`, or none if
/// lab/bpf-run runs it itself.
pub(crate) type Table = Vec<Option<usize>>;

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
struct Caller<'a, 'k> {
    state: &'a mut State,
    context: &'a mut Context<'k>,
    table: &'a Table,
}

impl Kernel for Caller<'_, '_> {
    fn call(&mut self, callee: Callee, args: [u64; 5], guest: &mut Guest) -> Result<u64, Ending> {
        let run = match callee {
            Callee::Kfunc(which) => {
                let known = self.table.get(which as usize).copied().flatten();
                known.map(|at| KFUNCS[at].1)
            }
            Callee::Helper(number) => {
                let known = HELPERS.iter().find(|(known, _)| *known == number);
                known.map(|(_, run)| *run)
            }
        };
        let run = run.ok_or_else(|| Ending::Call(format!("{callee:?}")))?;
        let mut here = Here {
            state: self.state,
            guest,
            context: self.context,
        };
        here.pay_instructions();
        let answer = run(&mut here, args)?;
        match &here.state.ejected {
            Some(why) => Err(Ending::Kernel(why.clone())),
            None => Ok(answer),
        }
    }

    fn called(&mut self, callee: Callee) {
        self.context.compute(match callee {
            Callee::Helper(_) => self.state.costs.helper,
            Callee::Kfunc(_) => self.state.costs.kfunc,
        });
    }

    fn charge(&mut self, address: u64, size: u32, access: Access) {
        self.state.lines.access(self.context, address, size, access);
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
        let cycles = new * self.state.costs.instructions / 100;
        self.context.compute(warmq_units::Cycles(cycles));
    }

    /// Calls a function of the program, and returns what it returns; `None` if that has been
    /// ejected, now or before.
    pub(crate) fn call(
        &mut self,
        code: &Code,
        function: Option<u32>,
        during: During,
        args: &[u64],
    ) -> Option<u64> {
        self.run(
            code,
            function?,
            during,
            |program, guest, caller, function| program.run_context(guest, caller, function, args),
        )
    }

    /// Calls a program of kind syscall, for free, with the address of its argument.
    pub(crate) fn call_syscall(
        &mut self,
        code: &Code,
        function: u32,
        argument: u64,
    ) -> Option<u64> {
        let costs = std::mem::take(&mut self.state.costs);
        let returned = self.call_timer(code, function, &[argument]);
        self.state.costs = costs;
        returned
    }

    /// Calls a timer's function, which takes its arguments as they are.
    pub(crate) fn call_timer(&mut self, code: &Code, function: u32, args: &[u64]) -> Option<u64> {
        let during = During::Other;
        self.run(
            code,
            function,
            during,
            |program, guest, caller, function| program.run(guest, caller, function, args),
        )
    }

    fn run(
        &mut self,
        code: &Code,
        function: u32,
        during: During,
        run: impl FnOnce(&Program, &mut Guest, &mut Caller<'_, '_>, u32) -> Result<u64, Box<Ended>>,
    ) -> Option<u64> {
        if self.state.ejected.is_some() {
            return None;
        }
        self.state.lines.begin();
        self.write_preempt_count();
        self.write_clock();
        self.state.during = during;
        self.context.compute(self.state.costs.callback);
        let mut caller = Caller {
            state: self.state,
            context: self.context,
            table: &code.table,
        };
        let ended = run(&code.program, self.guest, &mut caller, function);
        self.state.during = During::Other;
        self.pay_instructions();
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
    pub(crate) fn call_for_free(
        &mut self,
        code: &Code,
        function: Option<u32>,
        args: &[u64],
    ) -> Option<u64> {
        let costs = std::mem::take(&mut self.state.costs);
        let returned = self.call(code, function, During::Other, args);
        self.state.costs = costs;
        returned
    }
}

/// The decoded code of an object, and what its kfuncs are.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) program: Arc<Program>,
    pub(crate) table: Table,
}
