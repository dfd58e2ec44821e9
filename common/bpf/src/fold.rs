//! Which instructions can run at all: what the verifier finds by following constants. Registers
//! that hold constants are known, and what is read from frozen maps; a branch on known values goes
//! one way. Whatever is not reached is not asked for.

use std::collections::BTreeSet;

use crate::alu::{calculate, is_taken};
use crate::image::{Image, Insn, To};

/// What is known of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Number(u64),
    /// A byte of a frozen map.
    Data(u32, u64),
    /// An address, which is not 0.
    Address,
    /// A map.
    Map(u32),
    /// A byte of a map's value.
    At(Spot),
    /// The same, or 0.
    Found(Spot),
    /// What is there.
    Of(Spot),
    /// What was there, and something more.
    More(Spot),
    /// What makes a number less if it is added.
    Negative,
}

/// A byte of a value of a map, whichever value that is. Sections of data have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Index in [`Image::maps`].
    pub(crate) map: u32,
    /// In the value; if an index was added, of the array's first element.
    pub(crate) at: u64,
    /// Whether no index was added.
    exact: bool,
}

type Registers = [Known; 16];

/// What the programs add to, wherever they can be called and whatever is set, and never set to
/// anything but a constant, nor make less.
pub(crate) fn counted(image: &Image) -> Vec<Spot> {
    let mut fold = Fold::of(image);
    fold.sets_everything = true;
    (0..image.functions.len() as u32).for_each(|function| fold.enter(function));
    fold.walk();
    fold.added.difference(&fold.spoilt).copied().collect()
}

/// Marks what can be reached from the programs in `entries`, by their functions.
pub(crate) fn live(image: &Image, entries: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut fold = Fold::of(image);
    entries.for_each(|function| fold.enter(function));
    fold.walk();
    fold.before.iter().map(Option::is_some).collect()
}

struct Fold<'i> {
    image: &'i Image,
    /// What is known before each instruction; none, if it was not reached.
    before: Vec<Option<Registers>>,
    left: Vec<usize>,
    seen: Vec<bool>,
    /// User space may yet set what is in frozen maps.
    sets_everything: bool,
    /// What is added to, and to what something else is done.
    added: BTreeSet<Spot>,
    spoilt: BTreeSet<Spot>,
}

impl<'i> Fold<'i> {
    fn of(image: &'i Image) -> Fold<'i> {
        Fold {
            image,
            before: vec![None; image.code.len()],
            left: Vec::new(),
            seen: vec![false; image.functions.len()],
            sets_everything: false,
            added: BTreeSet::new(),
            spoilt: BTreeSet::new(),
        }
    }

    fn walk(&mut self) {
        while let Some(at) = self.left.pop() {
            self.step(at);
        }
    }

    fn enter(&mut self, function: u32) {
        let start = self
            .image
            .functions
            .get(function as usize)
            .map(|one| one.start as usize);
        let Some((start, seen)) = start.zip(self.seen.get_mut(function as usize)) else {
            return;
        };
        if !std::mem::replace(seen, true) {
            self.reach(start as i64, [Known::Nothing; 16]);
        }
    }

    /// An instruction is reached with these registers.
    fn reach(&mut self, at: i64, now: Registers) {
        let Ok(at) = usize::try_from(at) else { return };
        let Some(before) = self.before.get_mut(at) else {
            return;
        };
        let joined = match before {
            None => now,
            Some(before) => join(before, &now),
        };
        if *before != Some(joined) {
            *before = Some(joined);
            self.left.push(at);
        }
    }

    fn step(&mut self, at: usize) {
        let (Some(mut now), Some(insn)) = (self.before[at], self.image.code.get(at)) else {
            return;
        };
        let next = at as i64 + 1;
        match insn.code & 7 {
            0 if insn.code == 0x18 => {
                now[usize::from(insn.dst & 15)] = self.address(insn);
                self.reach(next + 1, now);
            }
            1 => {
                now[usize::from(insn.dst & 15)] = self.load(insn, &now);
                self.reach(next, now);
            }
            3 if insn.code & 0xe0 == 0xc0 => {
                self.stores(insn, &now);
                // Atomics write their source register or r0.
                now[usize::from(insn.src & 15)] = Known::Nothing;
                now[0] = Known::Nothing;
                self.reach(next, now);
            }
            3 => {
                self.stores(insn, &now);
                self.reach(next, now);
            }
            4 | 7 => {
                now[usize::from(insn.dst & 15)] = compute(insn, &now);
                self.reach(next, now);
            }
            5 | 6 => self.jump(next, insn, now),
            _ => self.reach(next, now),
        }
    }

    /// A register is stored, or added to what is in memory.
    fn stores(&mut self, insn: &Insn, now: &Registers) {
        const ADDS: i32 = 0;
        let there = &now[usize::from(insn.dst & 15)];
        let Some(spot) = spot(there).map(|spot| spot.after(insn.off as u64)) else {
            return;
        };
        let value = now[usize::from(insn.src & 15)];
        let adds = match insn.code & 0xe0 {
            0xc0 if insn.imm & 0xf0 != ADDS => Some(false),
            0xc0 => Some(!is_negative(value)),
            _ => match value {
                Known::Number(_) => None,
                value => Some(value == Known::More(spot)),
            },
        };
        match adds {
            Some(true) => drop(self.added.insert(spot)),
            Some(false) => drop(self.spoilt.insert(spot)),
            None => {}
        }
    }

    fn address(&mut self, insn: &Insn) -> Known {
        match insn.to {
            To::Number(number) => Known::Number(number),
            To::Map(map) => Known::Map(map),
            To::MapValue(map, offset) if self.is_frozen(map) => Known::Data(map, offset.into()),
            To::MapValue(map, offset) => {
                let (at, exact) = (offset.into(), true);
                Known::At(Spot { map, at, exact })
            }
            To::Function(function) => {
                self.enter(function);
                Known::Address
            }
            To::Nothing => Known::Nothing,
            _ => Known::Address,
        }
    }

    fn is_frozen(&self, map: u32) -> bool {
        self.image
            .maps
            .get(map as usize)
            .is_some_and(|map| map.frozen)
    }

    fn load(&self, insn: &Insn, now: &Registers) -> Known {
        let (map, at) = match now[usize::from(insn.src & 15)] {
            Known::Data(map, at) if !self.sets_everything => (map, at),
            Known::At(spot) | Known::Found(spot) => return Known::Of(spot.after(insn.off as u64)),
            _ => return Known::Nothing,
        };
        if insn.code & 0xe0 != 0x60 {
            return Known::Nothing;
        }
        let size = [4, 2, 1, 8][usize::from(insn.code >> 3 & 3)];
        let at = usize::try_from(at.wrapping_add(insn.off as u64));
        let map = self.image.maps.get(map as usize);
        let value = at.ok().zip(map);
        let value = value.and_then(|(at, map)| crate::bytes::number_at(&map.initial, at, size));
        value.map_or(Known::Nothing, Known::Number)
    }

    fn jump(&mut self, next: i64, insn: &Insn, mut now: Registers) {
        let there = next + i64::from(insn.off);
        match (insn.code & 0xf0, insn.code & 7) {
            (0x00, 5) => self.reach(there, now),
            (0x00, _) => self.reach(next + i64::from(insn.imm), now),
            (0x80, _) => {
                if let To::Function(function) = insn.to {
                    self.enter(function);
                }
                let found = found(insn, now[1]);
                now[..6].fill(Known::Nothing);
                now[0] = found;
                self.reach(next, now);
            }
            (0x90, _) => {}
            (0xe0, _) => {
                self.reach(there, now);
                self.reach(next, now);
            }
            _ => {
                let taken = taken(insn, &now);
                if taken != Some(false) {
                    self.reach(there, now);
                }
                if taken != Some(true) {
                    self.reach(next, now);
                }
            }
        }
    }
}

impl Known {
    /// Whether it is one that is not 0.
    fn is_address(&self) -> bool {
        match self {
            Known::Address | Known::Map(_) => true,
            Known::At(spot) => spot.exact,
            _ => false,
        }
    }
}

impl Spot {
    fn after(self, bytes: u64) -> Spot {
        let at = self.at.wrapping_add(bytes);
        Spot { at, ..self }
    }

    /// With a number added, or an index.
    fn by(self, known: Known) -> Spot {
        match known {
            Known::Number(bytes) => self.after(bytes),
            _ => Spot {
                exact: false,
                ..self
            },
        }
    }
}

fn spot(address: &Known) -> Option<Spot> {
    match address {
        Known::At(spot) | Known::Found(spot) => Some(*spot),
        _ => None,
    }
}

/// What a call returns: `bpf_map_lookup_elem` and `bpf_map_lookup_percpu_elem` find a value.
fn found(insn: &Insn, first: Known) -> Known {
    match (insn.to, first) {
        (To::Helper(1 | 195), Known::Map(map)) => {
            let (at, exact) = (0, true);
            Known::Found(Spot { map, at, exact })
        }
        _ => Known::Nothing,
    }
}

/// Whether it makes a number less, of 32 bits or 64.
fn is_negative(value: Known) -> bool {
    match value {
        Known::Number(number) => number > i32::MAX as u64,
        value => value == Known::Negative,
    }
}

fn join(one: &Registers, other: &Registers) -> Registers {
    let mut joined = *one;
    for (joined, other) in joined.iter_mut().zip(other) {
        if joined != other {
            let both = [*joined, *other];
            *joined = match both.iter().all(Known::is_address) {
                true => Known::Address,
                false => Known::Nothing,
            };
        }
    }
    joined
}

/// The right side of an operation.
fn operand(insn: &Insn, now: &Registers) -> Known {
    match insn.code & 8 {
        0 => Known::Number(i64::from(insn.imm) as u64),
        _ => now[usize::from(insn.src & 15)],
    }
}

fn compute(insn: &Insn, now: &Registers) -> Known {
    let wide = insn.code & 7 == 7;
    let (left, right) = (now[usize::from(insn.dst & 15)], operand(insn, now));
    let (is_move, adds) = (insn.code & 0xf0 == 0xb0, insn.code & 0xf0 == 0);
    match (left, right) {
        // A sign-extending move, or a cast of the arena.
        _ if insn.off != 0 => Known::Nothing,
        _ if insn.code & 0xf0 == 0x80 => Known::Negative,
        (_, Known::Number(right)) if is_move && !wide => Known::Number(u64::from(right as u32)),
        (_, right) if is_move && wide => right,
        (_, Known::Of(_) | Known::More(_)) if is_move => right,
        (Known::Data(map, at), Known::Number(by)) if wide && adds => {
            Known::Data(map, at.wrapping_add(by))
        }
        (Known::At(spot), by) | (by, Known::At(spot)) if wide && adds => Known::At(spot.by(by)),
        (Known::Found(spot), by) if wide && adds => Known::Found(spot.by(by)),
        (Known::Of(spot) | Known::More(spot), by) | (by, Known::Of(spot))
            if adds && !is_negative(by) =>
        {
            Known::More(spot)
        }
        // Divided by one another they are no constant to the verifier.
        _ if matches!(insn.code & 0xf0, 0x30 | 0x90) => Known::Nothing,
        (Known::Number(left), Known::Number(right)) => {
            calculate(insn.code, left, right).map_or(Known::Nothing, Known::Number)
        }
        _ => Known::Nothing,
    }
}

/// Whether a branch is taken, if that is known.
fn taken(insn: &Insn, now: &Registers) -> Option<bool> {
    match (now[usize::from(insn.dst & 15)], operand(insn, now)) {
        (Known::Number(left), Known::Number(right)) => is_taken(insn.code, left, right),
        (left, Known::Number(0)) if left.is_address() || matches!(left, Known::Data(..)) => {
            match insn.code & 0xf0 {
                0x10 => Some(false),
                0x50 => Some(true),
                _ => None,
            }
        }
        _ => None,
    }
}
