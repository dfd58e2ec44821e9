//! Runs programs.

use std::sync::Arc;

use warmq_bpf::{Image, alu};

use crate::calls::{self, Local};
use crate::decode::{CONSTANT, Op, decode, own};
use crate::ending::{Ended, Ending};
use crate::guest::Guest;
use crate::kernel::{Access, Callee, Kernel};
use crate::memory::{ARENA, FRAME, FRAME_STRIDE, FRAMES, Memory, STACK};

/// The code of an object, decoded for the addresses of one [`Guest`] and its clones.
#[derive(Clone, Debug)]
pub struct Program {
    image: Arc<Image>,
    pub(crate) ops: Vec<Op>,
    /// The instruction of the image that each is of.
    from: Vec<u32>,
    starts: Vec<u32>,
    /// Kfuncs that need no kernel.
    pub(crate) local: Vec<Option<Local>>,
}

/// What a call remembers of its caller.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    at: usize,
    saved: [u64; 4],
}

/// Registers. All 16, so that the four bits of a register's number are always one.
pub(crate) type Registers = [u64; 16];

/// What runs, and for whom.
pub(crate) struct Run<'r, K> {
    pub(crate) program: &'r Program,
    guest: &'r mut Guest,
    kernel: &'r mut K,
    pub(crate) thread: Thread,
}

/// Where a run is, with which registers.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) registers: Registers,
    pub(crate) at: usize,
    /// The first instruction that is not counted yet.
    since: usize,
    frames: [Frame; FRAMES],
    depth: usize,
    /// The depth at which it began.
    first: usize,
    loops: u64,
    /// Where it began.
    begins: usize,
}

/// `BPF_MAX_LOOPS`: how often `may_goto` goes on, and `bpf_loop` calls at most.
const MOST_LOOPS: u64 = 8 << 20;

impl Program {
    /// Decodes the code of a guest's object. Variables of the kernel must have their addresses:
    /// those without have 0.
    pub fn new(guest: &Guest) -> Program {
        let image = guest.image().clone();
        let decoded = decode(&image, guest);
        let local = image.kfuncs.iter().map(|name| calls::local(name)).collect();
        Program {
            ops: decoded.ops,
            from: decoded.from,
            starts: decoded.starts,
            image,
            local,
        }
    }

    /// The object.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Runs a function with up to five arguments, and returns what it returns.
    ///
    /// # Errors
    /// How it ended before, and where.
    pub fn run<K: Kernel>(
        &self,
        guest: &mut Guest,
        kernel: &mut K,
        function: u32,
        args: &[u64],
    ) -> Result<u64, Box<Ended>> {
        if guest.depth == 0 {
            guest.end = guest.instructions.saturating_add(guest.shape.instructions);
        }
        kernel.entered(function);
        let before = guest.depth;
        let mut run = Run {
            program: self,
            thread: self.thread(before, function, args),
            guest,
            kernel,
        };
        let result = run.enter().and_then(|()| run.finish());
        let thread = &run.thread;
        let result = result.map_err(|ending| self.ended(thread, ending));
        run.guest.depth = before;
        result
    }

    /// A run that has not begun, in frames from `depth` on.
    pub(crate) fn thread(&self, depth: usize, function: u32, args: &[u64]) -> Thread {
        let begins = self.start_of(function);
        let mut registers = [0; 16];
        for (register, arg) in registers[1..6].iter_mut().zip(args) {
            *register = *arg;
        }
        Thread {
            registers,
            at: begins,
            since: begins,
            frames: [Frame::default(); FRAMES],
            depth,
            first: depth,
            loops: 0,
            begins,
        }
    }

    /// Goes on until it is interrupted or returns.
    pub(crate) fn resume<K: Kernel>(
        &self,
        guest: &mut Guest,
        kernel: &mut K,
        thread: &mut Thread,
    ) -> Result<Option<u64>, Box<Ended>> {
        let begins = thread.depth == thread.first;
        let mut run = Run {
            program: self,
            thread: thread.clone(),
            guest,
            kernel,
        };
        let entered = if begins { run.enter() } else { Ok(()) };
        let result = entered.and_then(|()| run.go());
        *thread = run.thread;
        result.map_err(|ending| self.ended(thread, ending))
    }

    fn ended(&self, thread: &Thread, ending: Ending) -> Box<Ended> {
        // The instruction that was taken last, if there was one.
        let at = thread.at - usize::from(thread.at != thread.begins);
        let (begins, at) = (self.place(thread.begins), self.place(at));
        Ended::at(&self.image, begins, at, ending)
    }

    /// The instruction of the image that one of ours is of.
    pub(crate) fn place(&self, at: usize) -> u32 {
        self.from.get(at).copied().unwrap_or(u32::MAX)
    }

    fn start_of(&self, function: u32) -> usize {
        let start = self.starts.get(function as usize);
        start.map_or(usize::MAX, |at| *at as usize)
    }

    /// Runs a program that takes a pointer to its arguments, 32 at most: all of struct_ops, tp_btf,
    /// fentry, fexit and syscall.
    ///
    /// # Errors
    /// How it ended before, and where.
    pub fn run_context<K: Kernel>(
        &self,
        guest: &mut Guest,
        kernel: &mut K,
        function: u32,
        args: &[u64],
    ) -> Result<u64, Box<Ended>> {
        let context = write_context(guest, args);
        self.run(guest, kernel, function, &[context])
    }
}

/// Writes the arguments of a program beside its first frame; their address.
pub(crate) fn write_context(guest: &mut Guest, args: &[u64]) -> u64 {
    let context = STACK + guest.depth as u64 * FRAME_STRIDE + FRAME;
    guest.arguments = args.len() as u64;
    for (at, arg) in (0..32).zip(args) {
        // No frame is left: entering it says so.
        let _ = guest.store(context + at * 8, 8, *arg);
    }
    context
}

impl<K: Kernel> Run<'_, K> {
    /// Takes a frame.
    fn enter(&mut self) -> Result<(), Ending> {
        if self.thread.depth >= FRAMES {
            return Err(Ending::TooDeep(FRAMES));
        }
        self.thread.registers[10] = STACK + self.thread.depth as u64 * FRAME_STRIDE + FRAME;
        self.thread.depth += 1;
        Ok(())
    }

    /// Counts what ran up to and with the instruction before `self.thread.at`, and goes on at `to`.
    #[inline(always)]
    fn jump(&mut self, to: usize) -> Result<(), Ending> {
        self.guest.instructions += (self.thread.at - self.thread.since) as u64;
        if self.guest.instructions >= self.guest.end {
            return Err(Ending::TooLong(self.guest.shape.instructions));
        }
        self.thread.at = to;
        self.thread.since = to;
        Ok(())
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: u64) -> u64 {
        if Memory::is_stack(address) {
            return self.guest.memory.load(address, size);
        }
        let value = self.guest.memory.peek(address, size);
        match value {
            Some(value) => {
                self.kernel.charge(address, size as u32, Access::Load);
                value
            }
            None => self.guest.memory.load(address, size),
        }
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: u64, value: u64) -> Result<(), Ending> {
        if !Memory::is_stack(address) {
            self.kernel.charge(address, size as u32, Access::Store);
        }
        self.guest.memory.store(address, size, value)
    }

    /// Runs until it returns.
    fn finish(&mut self) -> Result<u64, Ending> {
        loop {
            if let Some(returned) = self.go()? {
                return Ok(returned);
            }
        }
    }

    /// Runs until it returns; `None` if it is interrupted before.
    fn go(&mut self) -> Result<Option<u64>, Ending> {
        let program = self.program;
        let mut begins = true;
        loop {
            let Some(op) = program.ops.get(self.thread.at) else {
                return Err(Ending::RanOut);
            };
            if K::INTERRUPTED && !std::mem::take(&mut begins) && self.is_shared(op) {
                return Ok(None);
            }
            if K::STEPS {
                self.kernel.step(program.from[self.thread.at]);
            }
            self.thread.at += 1;
            let dst = usize::from(op.dst & 15);
            let (left, source) = (
                self.thread.registers[dst],
                self.thread.registers[usize::from(op.src & 15)],
            );
            let right = if op.code & 8 == 0 { op.imm } else { source };
            let (l, r) = (left as u32, right as u32);
            let from = source.wrapping_add(op.off as u64);
            let to = left.wrapping_add(op.off as u64);
            match op.code {
                0x07 | 0x0f => self.thread.registers[dst] = left.wrapping_add(right),
                0x17 | 0x1f => self.thread.registers[dst] = left.wrapping_sub(right),
                0x27 | 0x2f => self.thread.registers[dst] = left.wrapping_mul(right),
                0x47 | 0x4f => self.thread.registers[dst] = left | right,
                0x57 | 0x5f => self.thread.registers[dst] = left & right,
                0x67 | 0x6f => self.thread.registers[dst] = left << (right & 63),
                0x77 | 0x7f => self.thread.registers[dst] = left >> (right & 63),
                0xa7 | 0xaf => self.thread.registers[dst] = left ^ right,
                0xb7 | 0xbf => self.thread.registers[dst] = right,
                0x04 | 0x0c => self.thread.registers[dst] = l.wrapping_add(r).into(),
                0x14 | 0x1c => self.thread.registers[dst] = l.wrapping_sub(r).into(),
                0x24 | 0x2c => self.thread.registers[dst] = l.wrapping_mul(r).into(),
                0x44 | 0x4c => self.thread.registers[dst] = (l | r).into(),
                0x54 | 0x5c => self.thread.registers[dst] = (l & r).into(),
                0x64 | 0x6c => self.thread.registers[dst] = (l << (r & 31)).into(),
                0x74 | 0x7c => self.thread.registers[dst] = (l >> (r & 31)).into(),
                0xa4 | 0xac => self.thread.registers[dst] = (l ^ r).into(),
                0xb4 | 0xbc => self.thread.registers[dst] = r.into(),
                0x61 => self.thread.registers[dst] = self.load(from, 4),
                0x69 => self.thread.registers[dst] = self.load(from, 2),
                0x71 => self.thread.registers[dst] = self.load(from, 1),
                0x79 => self.thread.registers[dst] = self.load(from, 8),
                0x62 => self.store(to, 4, op.imm)?,
                0x6a => self.store(to, 2, op.imm)?,
                0x72 => self.store(to, 1, op.imm)?,
                0x7a => self.store(to, 8, op.imm)?,
                0x63 => self.store(to, 4, source)?,
                0x6b => self.store(to, 2, source)?,
                0x73 => self.store(to, 1, source)?,
                0x7b => self.store(to, 8, source)?,
                0xc3 => self.atomic(*op, to, 4)?,
                0xdb => self.atomic(*op, to, 8)?,
                0x15 | 0x1d => self.branch(left == right, op)?,
                0x25 | 0x2d => self.branch(left > right, op)?,
                0x35 | 0x3d => self.branch(left >= right, op)?,
                0x55 | 0x5d => self.branch(left != right, op)?,
                0xa5 | 0xad => self.branch(left < right, op)?,
                0xb5 | 0xbd => self.branch(left <= right, op)?,
                0x16 | 0x1e => self.branch(l == r, op)?,
                0x26 | 0x2e => self.branch(l > r, op)?,
                0x36 | 0x3e => self.branch(l >= r, op)?,
                0x56 | 0x5e => self.branch(l != r, op)?,
                0xa6 | 0xae => self.branch(l < r, op)?,
                0xb6 | 0xbe => self.branch(l <= r, op)?,
                0x18 => self.thread.registers[dst] = op.imm,
                0x05 => self.jump(op.off as usize)?,
                0xe5 => self.may_goto(op)?,
                0x95 => {
                    if let Some(returned) = self.leave()? {
                        return Ok(Some(returned));
                    }
                }
                own::CALL => self.call(op.imm as usize)?,
                own::HELPER => self.outside(Callee::Helper(op.imm as u32))?,
                own::KFUNC => self.outside(Callee::Kfunc(op.imm as u32))?,
                own::BAD => return Err(Ending::Opcode(op.imm as u8)),
                _ => self.rare(op, left, source, from)?,
            }
        }
    }

    #[inline(always)]
    fn branch(&mut self, taken: bool, op: &Op) -> Result<(), Ending> {
        if taken {
            self.jump(op.off as usize)?;
        }
        Ok(())
    }

    /// What programs have few of.
    #[inline(never)]
    fn rare(&mut self, op: &Op, left: u64, source: u64, from: u64) -> Result<(), Ending> {
        let right = if op.code & 8 == 0 { op.imm } else { source };
        let value = match op.code & 7 {
            0 => Some(extend(op, left, source)),
            1 => self.load_signed(op, from),
            4 | 7 => calculate(op, left, right),
            5 | 6 => {
                let taken = alu::is_taken(op.code, left, right).ok_or(Ending::Opcode(op.code))?;
                return self.branch(taken, op);
            }
            _ => None,
        };
        self.thread.registers[usize::from(op.dst & 15)] = value.ok_or(Ending::Opcode(op.code))?;
        Ok(())
    }

    fn load_signed(&mut self, op: &Op, from: u64) -> Option<u64> {
        Some(match op.code {
            0x81 => i64::from(self.load(from, 4) as i32) as u64,
            0x89 => i64::from(self.load(from, 2) as i16) as u64,
            0x91 => i64::from(self.load(from, 1) as i8) as u64,
            _ => return None,
        })
    }

    /// Goes on until it was asked too often.
    fn may_goto(&mut self, op: &Op) -> Result<(), Ending> {
        self.thread.loops += 1;
        if self.thread.loops > MOST_LOOPS {
            self.jump(op.off as usize)
        } else {
            Ok(())
        }
    }

    /// Calls a function of the object.
    fn call(&mut self, function: usize) -> Result<(), Ending> {
        let saved = [
            self.thread.registers[6],
            self.thread.registers[7],
            self.thread.registers[8],
            self.thread.registers[9],
        ];
        let frame = Frame {
            at: self.thread.at,
            saved,
        };
        self.kernel.entered(function as u32);
        self.enter()?;
        self.thread.frames[self.thread.depth - 1] = frame;
        self.jump(self.program.start_of(function as u32))
    }

    /// Returns from a function; what the first one returned.
    fn leave(&mut self) -> Result<Option<u64>, Ending> {
        self.thread.depth -= 1;
        if self.thread.depth == self.thread.first {
            self.jump(self.thread.at)?;
            return Ok(Some(self.thread.registers[0]));
        }
        let frame = self.thread.frames[self.thread.depth];
        self.thread.registers[6..10].copy_from_slice(&frame.saved);
        self.thread.registers[10] = STACK + (self.thread.depth as u64 - 1) * FRAME_STRIDE + FRAME;
        self.jump(frame.at)?;
        Ok(None)
    }

    /// Calls what is not in the object.
    fn outside(&mut self, callee: Callee) -> Result<(), Ending> {
        self.jump(self.thread.at)?;
        let args = std::array::from_fn(|at| self.thread.registers[at + 1]);
        self.kernel.called(callee, &args);
        self.guest.depth = self.thread.depth;
        let local = match callee {
            Callee::Helper(181) => return self.bpf_loop(args),
            Callee::Helper(number) => calls::helper(number),
            Callee::Kfunc(which) => self.program.local.get(which as usize).copied().flatten(),
        };
        self.thread.registers[0] = match local {
            Some(Local::TreeAdd) => self.tree_add(args)?,
            Some(local) => calls::run(local, args, self.guest, self.kernel)?,
            None => self.kernel.call(callee, args, self.guest)?,
        };
        Ok(())
    }

    /// `bpf_loop(nr, callback, context, flags)`.
    fn bpf_loop(&mut self, [count, callback, context, _, _]: [u64; 5]) -> Result<(), Ending> {
        const E2BIG: i64 = 7;
        let function = crate::guest::function_of(callback);
        let call = "bpf_loop";
        let wrong = Ending::Argument {
            call,
            address: callback,
            wanted: "function",
        };
        let function = function.ok_or(wrong)?;
        if count > MOST_LOOPS {
            self.thread.registers[0] = -E2BIG as u64;
            return Ok(());
        }
        let mut done = 0;
        while done < count {
            let args = [done, context];
            let returned = self.program.run(self.guest, self.kernel, function, &args);
            done += 1;
            if returned.map_err(|ended| ended.ending)? != 0 {
                break;
            }
        }
        self.thread.registers[0] = done;
        Ok(())
    }

    /// `bpf_rbtree_add_impl(root, node, less, ...)`: after all that are not more than it.
    fn tree_add(&mut self, [root, node, less, ..]: [u64; 5]) -> Result<u64, Ending> {
        const EINVAL: i64 = 22;
        let wrong = Ending::Argument {
            call: "bpf_rbtree_add",
            address: less,
            wanted: "function",
        };
        let function = crate::guest::function_of(less).ok_or(wrong)?;
        if self.guest.graph.has(node) {
            return Ok(-EINVAL as u64);
        }
        let (mut from, mut to) = (0, self.guest.graph.len(root));
        while from < to {
            let middle = (from + to) / 2;
            let args = [node, self.guest.graph.node(root, middle)];
            let returned = self.program.run(self.guest, self.kernel, function, &args);
            match returned.map_err(|ended| ended.ending)? & 1 {
                0 => from = middle + 1,
                _ => to = middle,
            }
        }
        Ok(self.guest.graph.insert(root, node, from))
    }

    /// Reads, calculates and writes at once (`BPF_ATOMIC`).
    fn atomic(&mut self, op: Op, address: u64, size: u64) -> Result<(), Ending> {
        const FETCH: u64 = 1;
        let given = self.thread.registers[usize::from(op.src & 15)];
        if !Memory::is_stack(address) {
            self.kernel.charge(address, size as u32, Access::Atomic);
        }
        let old = self.guest.memory.load(address, size);
        let new = match op.imm & !FETCH {
            0x00 => old.wrapping_add(given),
            0x40 => old | given,
            0x50 => old & given,
            0xa0 => old ^ given,
            0xe0 => given,
            0xf0 => {
                let wanted = self.thread.registers[0];
                let equal = if size == 4 {
                    old as u32 == wanted as u32
                } else {
                    old == wanted
                };
                self.thread.registers[0] = old;
                if equal { given } else { old }
            }
            _ => return Err(Ending::Opcode(op.code)),
        };
        self.guest.memory.store(address, size, new)?;
        if op.imm & FETCH != 0 && op.imm & 0xf0 != 0xf0 {
            self.thread.registers[usize::from(op.src & 15)] = old;
        }
        Ok(())
    }
}

/// What a rare operation of arithmetic gives.
fn calculate(op: &Op, left: u64, right: u64) -> Option<u64> {
    match op.code {
        0xd4 => Some(truncate(left, op.imm)),
        0xd7 | 0xdc => Some(swap(left, op.imm)),
        code => alu::calculate(code, left, right),
    }
}

/// Moves that extend a sign, casts of the arena, signed division.
fn extend(op: &Op, left: u64, right: u64) -> u64 {
    match op.code {
        own::MOVE_S8 => i64::from(right as i8) as u64,
        own::MOVE_S16 => i64::from(right as i16) as u64,
        own::MOVE_S32 => i64::from(right as i32) as u64,
        own::MOVE32_S8 => u64::from(i32::from(right as i8) as u32),
        own::MOVE32_S16 => u64::from(i32::from(right as i16) as u32),
        own::CAST_KERNEL => u64::from(right as u32),
        own::CAST_USER if right as u32 == 0 => 0,
        own::CAST_USER => ARENA & !0xffff_ffff | u64::from(right as u32),
        _ => signed(*op, left, if op.src == CONSTANT { op.imm } else { right }),
    }
}

fn truncate(value: u64, bits: u64) -> u64 {
    match bits {
        16 => u64::from(value as u16),
        32 => u64::from(value as u32),
        _ => value,
    }
}

fn swap(value: u64, bits: u64) -> u64 {
    match bits {
        16 => u64::from((value as u16).swap_bytes()),
        32 => u64::from((value as u32).swap_bytes()),
        _ => value.swap_bytes(),
    }
}

/// Signed division and remainder: by 0, 0 and the value itself; no overflow.
fn signed(op: Op, left: u64, right: u64) -> u64 {
    let wide = op.off == 1;
    let of = |number: u64| {
        if wide {
            number as i64
        } else {
            i64::from(number as i32)
        }
    };
    let (left, right) = (of(left), of(right));
    let value = match (op.code == own::DIVIDE, right) {
        (true, 0) => 0,
        (false, 0) => left,
        (true, _) => left.wrapping_div(right),
        (false, _) => left.wrapping_rem(right),
    };
    if wide {
        value as u64
    } else {
        u64::from(value as u32)
    }
}
