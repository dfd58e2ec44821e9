//! Instructions as they are run: jumps and addresses are resolved, `ld_imm64` is one.

use warmq_bpf::{Image, Insn, To};

use crate::guest::{Guest, function_handle, map_handle};

/// An instruction. Its code is that of BPF but for those in [`own`], which take codes of BPF that
/// no program can have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Op {
    pub(crate) code: u8,
    pub(crate) dst: u8,
    pub(crate) src: u8,
    /// Of memory, bytes; of a jump, the instruction that it leads to.
    pub(crate) off: i32,
    pub(crate) imm: u64,
}

/// Codes that BPF does not have, or not as one.
pub(crate) mod own {
    pub(crate) const MOVE_S8: u8 = 0x00;
    pub(crate) const MOVE_S16: u8 = 0x08;
    pub(crate) const MOVE_S32: u8 = 0x10;
    pub(crate) const MOVE32_S8: u8 = 0x20;
    pub(crate) const MOVE32_S16: u8 = 0x28;
    /// Address of the arena to what programs access: its lower half.
    pub(crate) const CAST_KERNEL: u8 = 0x30;
    /// And back: the upper half is the arena's, unless it is null.
    pub(crate) const CAST_USER: u8 = 0x38;
    /// What cannot be run; `imm` has the code.
    pub(crate) const BAD: u8 = 0x40;
    pub(crate) const CALL: u8 = 0x48;
    pub(crate) const HELPER: u8 = 0x50;
    pub(crate) const KFUNC: u8 = 0x58;
    /// Signed; `off` is 1, if of 64 bits; `imm` has the constant or nothing (`src` is 16).
    pub(crate) const DIVIDE: u8 = 0x60;
    pub(crate) const MODULO: u8 = 0x68;
}

/// No register: the constant is meant.
pub(crate) const CONSTANT: u8 = 16;

/// Decoded code, and the instruction of the image that each is of.
pub(crate) struct Decoded {
    pub(crate) ops: Vec<Op>,
    pub(crate) from: Vec<u32>,
    /// Where each function begins.
    pub(crate) starts: Vec<u32>,
}

/// Decodes all functions.
pub(crate) fn decode(image: &Image, guest: &Guest) -> Decoded {
    let mut to = vec![0_u32; image.code.len() + 1];
    let mut from = Vec::new();
    let mut at = 0;
    while at < image.code.len() {
        to[at] = from.len() as u32;
        from.push(at as u32);
        let wide = image.code[at].code == 0x18;
        if wide && let Some(second) = to.get_mut(at + 1) {
            *second = u32::MAX;
        }
        at += 1 + usize::from(wide);
    }
    to[image.code.len()] = u32::MAX;
    let starts = image
        .functions
        .iter()
        .map(|function| to[function.start as usize])
        .collect();
    let ops = from.iter().map(|at| {
        let live = image.live.get(*at as usize) == Some(&true);
        let insn = image.code[*at as usize];
        if live {
            one(guest, &insn, *at, &to)
        } else {
            bad(&insn)
        }
    });
    Decoded {
        ops: ops.collect(),
        starts,
        from,
    }
}

fn bad(insn: &Insn) -> Op {
    Op {
        code: own::BAD,
        imm: insn.code.into(),
        ..Op::default()
    }
}

fn one(guest: &Guest, insn: &Insn, at: u32, to: &[u32]) -> Op {
    let op = Op {
        code: insn.code,
        dst: insn.dst,
        src: insn.src,
        off: insn.off.into(),
        imm: i64::from(insn.imm) as u64,
    };
    let jump = |by: i64| {
        let target = usize::try_from(i64::from(at) + 1 + by).ok();
        let target = target
            .and_then(|target| to.get(target))
            .filter(|to| **to != u32::MAX);
        target.map_or(bad(insn), |to| Op {
            off: *to as i32,
            ..op
        })
    };
    if insn.dst > 10 || insn.src > 10 || writes_frame(insn) {
        return bad(insn);
    }
    match (insn.code, insn.off) {
        (0x18, _) => Op {
            imm: address(guest, insn.to),
            ..op
        },
        (0x85, _) => call(insn, op),
        (0x06, _) => Op {
            code: 0x05,
            ..jump(insn.imm.into())
        },
        (code, off) if matches!(code & 7, 5 | 6) && code != 0x95 => jump(off.into()),
        (0xbf, off) if off != 0 => moved(insn, op, [own::MOVE_S8, own::MOVE_S16, own::MOVE_S32]),
        (0xbc, off) if off != 0 => moved(insn, op, [own::MOVE32_S8, own::MOVE32_S16, own::BAD]),
        (code, 1) if matches!(code & 0xf7, 0x34 | 0x37 | 0x94 | 0x97) => {
            let is_divide = code & 0xf0 == 0x30;
            let src = if code & 8 == 0 { CONSTANT } else { insn.src };
            let code = if is_divide { own::DIVIDE } else { own::MODULO };
            Op {
                code,
                src,
                off: i32::from(insn.code & 7 == 7),
                ..op
            }
        }
        (code, _) if is_own(code) => bad(insn),
        _ => op,
    }
}

/// Whether an instruction would write the frame pointer.
fn writes_frame(insn: &Insn) -> bool {
    insn.dst == 10 && matches!(insn.code & 7, 0 | 1 | 4 | 7)
}

fn is_own(code: u8) -> bool {
    code & 7 == 0
}

/// A move that extends a sign, or a cast of the arena (`off` 1).
fn moved(insn: &Insn, op: Op, [s8, s16, s32]: [u8; 3]) -> Op {
    let code = match (insn.off, insn.imm) {
        (1, 1) => own::CAST_USER,
        (1, 0x1_0000) => own::CAST_KERNEL,
        (1, _) => own::BAD,
        (8, _) => s8,
        (16, _) => s16,
        (32, _) => s32,
        _ => own::BAD,
    };
    if code == own::BAD {
        bad(insn)
    } else {
        Op { code, ..op }
    }
}

fn call(insn: &Insn, op: Op) -> Op {
    let (code, which) = match insn.to {
        To::Function(function) => (own::CALL, function),
        To::Helper(number) => (own::HELPER, number),
        To::Kfunc(kfunc) => (own::KFUNC, kfunc),
        _ => return bad(insn),
    };
    Op {
        code,
        imm: which.into(),
        ..op
    }
}

fn address(guest: &Guest, to: To) -> u64 {
    match to {
        To::Number(number) => number,
        To::Map(map) => map_handle(map),
        To::MapValue(map, offset) => guest.value_address(map, offset),
        To::Function(function) => function_handle(function),
        To::Kernel(which) => {
            let name = guest.image().kernel_variables.get(which as usize);
            name.and_then(|name| guest.variable(name)).unwrap_or(0)
        }
        _ => 0,
    }
}
