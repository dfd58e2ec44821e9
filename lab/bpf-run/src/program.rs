//! Runs programs.

use std::sync::Arc;

use warmq_bpf::Image;

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
    ops: Vec<Op>,
    /// The instruction of the image that each is of.
    from: Vec<u32>,
    starts: Vec<u32>,
    /// Kfuncs that need no kernel.
    local: Vec<Option<Local>>,
}

/// What a call remembers of its caller.
#[derive(Clone, Copy, Default)]
struct Frame {
    at: usize,
    saved: [u64; 4],
}

/// Registers. All 16, so that the four bits of a register's number are always one.
type Registers = [u64; 16];

/// What runs: where, with which registers.
struct Run<'r, K> {
    program: &'r Program,
    guest: &'r mut Guest,
    kernel: &'r mut K,
    registers: Registers,
    at: usize,
    /// The first instruction that is not counted yet.
    since: usize,
    frames: [Frame; FRAMES],
    depth: usize,
    /// The depth at which it began.
    first: usize,
    loops: u64,
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
    ) -> Result<u64, Ended> {
        if guest.depth == 0 {
            guest.end = guest.instructions.saturating_add(guest.shape.instructions);
        }
        let begins = self
            .starts
            .get(function as usize)
            .map_or(usize::MAX, |at| *at as usize);
        let mut registers = [0; 16];
        for (register, arg) in registers[1..6].iter_mut().zip(args) {
            *register = *arg;
        }
        let (first, before) = (guest.depth, guest.depth);
        let mut run = Run {
            program: self,
            guest,
            kernel,
            registers,
            at: begins,
            since: begins,
            frames: [Frame::default(); FRAMES],
            depth: first,
            first,
            loops: 0,
        };
        let result = run.enter().and_then(|()| run.go());
        // The instruction that was taken last, if there was one.
        let at = run.at - usize::from(run.at != begins);
        guest.depth = before;
        result.map_err(|ending| {
            let place = |at: usize| self.from.get(at).copied().unwrap_or(u32::MAX);
            Ended::at(&self.image, place(begins), place(at), ending)
        })
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
    ) -> Result<u64, Ended> {
        let context = STACK + guest.depth as u64 * FRAME_STRIDE + FRAME;
        for (at, arg) in (0..32).zip(args) {
            // No frame is left: entering it says so.
            let _ = guest.store(context + at * 8, 8, *arg);
        }
        self.run(guest, kernel, function, &[context])
    }
}

impl<K: Kernel> Run<'_, K> {
    /// Takes a frame.
    fn enter(&mut self) -> Result<(), Ending> {
        if self.depth >= FRAMES {
            return Err(Ending::TooDeep(FRAMES));
        }
        self.registers[10] = STACK + self.depth as u64 * FRAME_STRIDE + FRAME;
        self.depth += 1;
        Ok(())
    }

    /// Counts what ran up to and with the instruction before `self.at`, and goes on at `to`.
    #[inline(always)]
    fn jump(&mut self, to: usize) -> Result<(), Ending> {
        self.guest.instructions += (self.at - self.since) as u64;
        if self.guest.instructions >= self.guest.end {
            return Err(Ending::TooLong(self.guest.shape.instructions));
        }
        self.at = to;
        self.since = to;
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

    fn go(&mut self) -> Result<u64, Ending> {
        let program = self.program;
        loop {
            let Some(op) = program.ops.get(self.at) else {
                return Err(Ending::RanOut);
            };
            let op = *op;
            self.at += 1;
            let (dst, src) = (usize::from(op.dst & 15), usize::from(op.src & 15));
            macro_rules! alu {
                ($value:expr) => {
                    self.registers[dst] = $value
                };
            }
            macro_rules! alu64 {
                ($right:expr, $calculate:expr) => {{
                    let calculate: fn(u64, u64) -> u64 = $calculate;
                    alu!(calculate(self.registers[dst], $right))
                }};
            }
            macro_rules! alu32 {
                ($right:expr, $calculate:expr) => {{
                    let calculate: fn(u32, u32) -> u32 = $calculate;
                    alu!(u64::from(calculate(
                        self.registers[dst] as u32,
                        $right as u32
                    )))
                }};
            }
            macro_rules! branch {
                ($taken:expr) => {
                    if $taken {
                        self.jump(op.off as usize)?;
                    }
                };
            }
            let left = self.registers[dst];
            let right = self.registers[src];
            let (l32, r32, i32) = (left as u32, right as u32, op.imm as u32);
            let there = right.wrapping_add(op.off as u64);
            let here = left.wrapping_add(op.off as u64);
            match op.code {
                0x07 => alu64!(op.imm, u64::wrapping_add),
                0x0f => alu64!(right, u64::wrapping_add),
                0x17 => alu64!(op.imm, u64::wrapping_sub),
                0x1f => alu64!(right, u64::wrapping_sub),
                0x27 => alu64!(op.imm, u64::wrapping_mul),
                0x2f => alu64!(right, u64::wrapping_mul),
                0x37 => alu64!(op.imm, |l, r| l.checked_div(r).unwrap_or(0)),
                0x3f => alu64!(right, |l, r| l.checked_div(r).unwrap_or(0)),
                0x47 => alu64!(op.imm, |l, r| l | r),
                0x4f => alu64!(right, |l, r| l | r),
                0x57 => alu64!(op.imm, |l, r| l & r),
                0x5f => alu64!(right, |l, r| l & r),
                0x67 => alu64!(op.imm, |l, r| l << (r & 63)),
                0x6f => alu64!(right, |l, r| l << (r & 63)),
                0x77 => alu64!(op.imm, |l, r| l >> (r & 63)),
                0x7f => alu64!(right, |l, r| l >> (r & 63)),
                0x87 => alu!(left.wrapping_neg()),
                0x97 => alu64!(op.imm, |l, r| l.checked_rem(r).unwrap_or(l)),
                0x9f => alu64!(right, |l, r| l.checked_rem(r).unwrap_or(l)),
                0xa7 => alu64!(op.imm, |l, r| l ^ r),
                0xaf => alu64!(right, |l, r| l ^ r),
                0xb7 | 0x18 => alu!(op.imm),
                0xbf => alu!(right),
                0xc7 => alu64!(op.imm, |l, r| (l as i64 >> (r & 63)) as u64),
                0xcf => alu64!(right, |l, r| (l as i64 >> (r & 63)) as u64),
                0x04 => alu32!(op.imm, u32::wrapping_add),
                0x0c => alu32!(right, u32::wrapping_add),
                0x14 => alu32!(op.imm, u32::wrapping_sub),
                0x1c => alu32!(right, u32::wrapping_sub),
                0x24 => alu32!(op.imm, u32::wrapping_mul),
                0x2c => alu32!(right, u32::wrapping_mul),
                0x34 => alu32!(op.imm, |l, r| l.checked_div(r).unwrap_or(0)),
                0x3c => alu32!(right, |l, r| l.checked_div(r).unwrap_or(0)),
                0x44 => alu32!(op.imm, |l, r| l | r),
                0x4c => alu32!(right, |l, r| l | r),
                0x54 => alu32!(op.imm, |l, r| l & r),
                0x5c => alu32!(right, |l, r| l & r),
                0x64 => alu32!(op.imm, |l, r| l << (r & 31)),
                0x6c => alu32!(right, |l, r| l << (r & 31)),
                0x74 => alu32!(op.imm, |l, r| l >> (r & 31)),
                0x7c => alu32!(right, |l, r| l >> (r & 31)),
                0x84 => alu!(u64::from(l32.wrapping_neg())),
                0x94 => alu32!(op.imm, |l, r| l.checked_rem(r).unwrap_or(l)),
                0x9c => alu32!(right, |l, r| l.checked_rem(r).unwrap_or(l)),
                0xa4 => alu32!(op.imm, |l, r| l ^ r),
                0xac => alu32!(right, |l, r| l ^ r),
                0xb4 => alu!(u64::from(i32)),
                0xbc => alu!(u64::from(r32)),
                0xc4 => alu32!(op.imm, |l, r| (l as i32 >> (r & 31)) as u32),
                0xcc => alu32!(right, |l, r| (l as i32 >> (r & 31)) as u32),
                0xd4 => alu!(truncate(left, op.imm)),
                0xdc | 0xd7 => alu!(swap(left, op.imm)),
                own::MOVE_S8 => alu!(i64::from(right as i8) as u64),
                own::MOVE_S16 => alu!(i64::from(right as i16) as u64),
                own::MOVE_S32 => alu!(i64::from(right as i32) as u64),
                own::MOVE32_S8 => alu!(u64::from(i32::from(right as i8) as u32)),
                own::MOVE32_S16 => alu!(u64::from(i32::from(right as i16) as u32)),
                own::CAST_KERNEL => alu!(u64::from(r32)),
                own::CAST_USER if r32 == 0 => alu!(0),
                own::CAST_USER => alu!(ARENA & !0xffff_ffff | u64::from(r32)),
                own::DIVIDE | own::MODULO => {
                    let right = if op.src == CONSTANT { op.imm } else { right };
                    alu!(signed(op, left, right));
                }
                0x61 => alu!(self.load(there, 4)),
                0x69 => alu!(self.load(there, 2)),
                0x71 => alu!(self.load(there, 1)),
                0x79 => alu!(self.load(there, 8)),
                0x81 => alu!(i64::from(self.load(there, 4) as i32) as u64),
                0x89 => alu!(i64::from(self.load(there, 2) as i16) as u64),
                0x91 => alu!(i64::from(self.load(there, 1) as i8) as u64),
                0x62 => self.store(here, 4, op.imm)?,
                0x6a => self.store(here, 2, op.imm)?,
                0x72 => self.store(here, 1, op.imm)?,
                0x7a => self.store(here, 8, op.imm)?,
                0x63 => self.store(here, 4, right)?,
                0x6b => self.store(here, 2, right)?,
                0x73 => self.store(here, 1, right)?,
                0x7b => self.store(here, 8, right)?,
                0xc3 => self.atomic(op, here, 4)?,
                0xdb => self.atomic(op, here, 8)?,
                0x05 => self.jump(op.off as usize)?,
                0x15 => branch!(left == op.imm),
                0x1d => branch!(left == right),
                0x25 => branch!(left > op.imm),
                0x2d => branch!(left > right),
                0x35 => branch!(left >= op.imm),
                0x3d => branch!(left >= right),
                0x45 => branch!(left & op.imm != 0),
                0x4d => branch!(left & right != 0),
                0x55 => branch!(left != op.imm),
                0x5d => branch!(left != right),
                0x65 => branch!(left as i64 > op.imm as i64),
                0x6d => branch!(left as i64 > right as i64),
                0x75 => branch!(left as i64 >= op.imm as i64),
                0x7d => branch!(left as i64 >= right as i64),
                0xa5 => branch!(left < op.imm),
                0xad => branch!(left < right),
                0xb5 => branch!(left <= op.imm),
                0xbd => branch!(left <= right),
                0xc5 => branch!((left as i64) < op.imm as i64),
                0xcd => branch!((left as i64) < right as i64),
                0xd5 => branch!(left as i64 <= op.imm as i64),
                0xdd => branch!(left as i64 <= right as i64),
                0x16 => branch!(l32 == i32),
                0x1e => branch!(l32 == r32),
                0x26 => branch!(l32 > i32),
                0x2e => branch!(l32 > r32),
                0x36 => branch!(l32 >= i32),
                0x3e => branch!(l32 >= r32),
                0x46 => branch!(l32 & i32 != 0),
                0x4e => branch!(l32 & r32 != 0),
                0x56 => branch!(l32 != i32),
                0x5e => branch!(l32 != r32),
                0x66 => branch!(l32 as i32 > i32 as i32),
                0x6e => branch!(l32 as i32 > r32 as i32),
                0x76 => branch!(l32 as i32 >= i32 as i32),
                0x7e => branch!(l32 as i32 >= r32 as i32),
                0xa6 => branch!(l32 < i32),
                0xae => branch!(l32 < r32),
                0xb6 => branch!(l32 <= i32),
                0xbe => branch!(l32 <= r32),
                0xc6 => branch!((l32 as i32) < i32 as i32),
                0xce => branch!((l32 as i32) < r32 as i32),
                0xd6 => branch!(l32 as i32 <= i32 as i32),
                0xde => branch!(l32 as i32 <= r32 as i32),
                0xe5 => {
                    self.loops += 1;
                    branch!(self.loops > MOST_LOOPS);
                }
                0x95 => {
                    if let Some(returned) = self.leave()? {
                        return Ok(returned);
                    }
                }
                own::CALL => self.call(op.imm as usize)?,
                own::HELPER => self.outside(Callee::Helper(op.imm as u32))?,
                own::KFUNC => self.outside(Callee::Kfunc(op.imm as u32))?,
                own::BAD => return Err(Ending::Opcode(op.imm as u8)),
                code => return Err(Ending::Opcode(code)),
            }
        }
    }

    /// Calls a function of the object.
    fn call(&mut self, function: usize) -> Result<(), Ending> {
        let saved = [
            self.registers[6],
            self.registers[7],
            self.registers[8],
            self.registers[9],
        ];
        let frame = Frame { at: self.at, saved };
        self.enter()?;
        self.frames[self.depth - 1] = frame;
        let to = self
            .program
            .starts
            .get(function)
            .map_or(usize::MAX, |at| *at as usize);
        self.jump(to)
    }

    /// Returns from a function; what the first one returned.
    fn leave(&mut self) -> Result<Option<u64>, Ending> {
        self.depth -= 1;
        if self.depth == self.first {
            self.jump(self.at)?;
            return Ok(Some(self.registers[0]));
        }
        let frame = self.frames[self.depth];
        self.registers[6..10].copy_from_slice(&frame.saved);
        self.registers[10] = STACK + (self.depth as u64 - 1) * FRAME_STRIDE + FRAME;
        self.jump(frame.at)?;
        Ok(None)
    }

    /// Calls what is not in the object.
    fn outside(&mut self, callee: Callee) -> Result<(), Ending> {
        self.jump(self.at)?;
        let args = std::array::from_fn(|at| self.registers[at + 1]);
        self.kernel.called(callee);
        self.guest.depth = self.depth;
        let local = match callee {
            Callee::Helper(181) => return self.bpf_loop(args),
            Callee::Helper(number) => calls::helper(number),
            Callee::Kfunc(which) => self.program.local.get(which as usize).copied().flatten(),
        };
        self.registers[0] = match local {
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
            self.registers[0] = -E2BIG as u64;
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
        self.registers[0] = done;
        Ok(())
    }

    /// Reads, calculates and writes at once (`BPF_ATOMIC`).
    fn atomic(&mut self, op: Op, address: u64, size: u64) -> Result<(), Ending> {
        const FETCH: u64 = 1;
        let given = self.registers[usize::from(op.src & 15)];
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
                let wanted = self.registers[0];
                let equal = if size == 4 {
                    old as u32 == wanted as u32
                } else {
                    old == wanted
                };
                self.registers[0] = old;
                if equal { given } else { old }
            }
            _ => return Err(Ending::Opcode(op.code)),
        };
        self.guest.memory.store(address, size, new)?;
        if op.imm & FETCH != 0 && op.imm & 0xf0 != 0xf0 {
            self.registers[usize::from(op.src & 15)] = old;
        }
        Ok(())
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
    let is_divide = op.code == own::DIVIDE;
    if op.off == 1 {
        let (left, right) = (left as i64, right as i64);
        return match (is_divide, right) {
            (true, 0) => 0,
            (false, 0) => left as u64,
            (true, _) => left.wrapping_div(right) as u64,
            (false, _) => left.wrapping_rem(right) as u64,
        };
    }
    let (left, right) = (left as i32, right as i32);
    let value = match (is_divide, right) {
        (true, 0) => 0,
        (false, 0) => left,
        (true, _) => left.wrapping_div(right),
        (false, _) => left.wrapping_rem(right),
    };
    u64::from(value as u32)
}
