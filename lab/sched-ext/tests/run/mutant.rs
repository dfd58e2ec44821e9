//! Compiled objects in which something is wrong.

use warmq_units::{Seed, Stream};

/// Bytes of an instruction.
const INSTRUCTION: usize = 8;

/// Numbers that are the first or the last of something.
const EDGES: [i32; 10] = [0, 1, -1, 8, 63, 64, 4096, i32::MAX, i32::MIN, 0x7fff];

/// Where things are in a file.
struct Sections {
    /// Instructions.
    code: Vec<usize>,
    /// Bytes of all sections.
    all: Vec<(usize, usize)>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    let bytes = bytes[at..at + size].iter().rev();
    bytes.fold(0, |all, byte| all << 8 | usize::from(*byte))
}

impl Sections {
    fn of(bytes: &[u8]) -> Sections {
        let (headers, size) = (number(bytes, 40, 8), number(bytes, 58, 2));
        let (mut code, mut all) = (Vec::new(), Vec::new());
        for at in (0..number(bytes, 60, 2)).map(|section| headers + section * size) {
            let (kind, flags) = (number(bytes, at + 4, 4), number(bytes, at + 8, 8));
            let (begins, length) = (number(bytes, at + 24, 8), number(bytes, at + 32, 8));
            // SHT_NULL and SHT_NOBITS have no bytes; SHT_PROGBITS with SHF_EXECINSTR is code.
            if kind == 1 && flags & 4 != 0 {
                code.extend((begins..begins + length).step_by(INSTRUCTION));
            }
            if kind != 0 && kind != 8 && length > 0 {
                all.push((begins, length));
            }
        }
        all.push((headers, size * number(bytes, 60, 2)));
        Sections { code, all }
    }
}

/// The object of a number: what `bytes` is, with up to eight things wrong. In three of four, only
/// instructions are, so that it is nearly always read, and often runs.
pub fn mutant(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let sections = Sections::of(&bytes);
    let mut random = Seed(seed).stream("mutant");
    let in_code = random.chance(3, 4);
    for _ in 0..random.between(1, 8) {
        match in_code {
            true => change_instruction(&mut bytes, &sections.code, &mut random),
            false => change_byte(&mut bytes, &sections.all, &mut random),
        }
    }
    bytes
}

fn one_of<T: Copy>(all: &[T], random: &mut Stream) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn change_byte(bytes: &mut [u8], sections: &[(usize, usize)], random: &mut Stream) {
    let (begins, length) = one_of(sections, random);
    let at = begins + random.below(length as u64) as usize;
    bytes[at] = match random.below(3) {
        0 => random.next() as u8,
        1 => bytes[at] ^ 1 << random.below(8),
        _ => one_of(&EDGES, random) as u8,
    };
}

fn change_instruction(bytes: &mut [u8], code: &[usize], random: &mut Stream) {
    let (at, other) = (one_of(code, random), one_of(code, random));
    match random.below(7) {
        0 => bytes[at] = random.next() as u8,
        1 => bytes[at + 1] = random.next() as u8,
        2 => {
            let offset = one_of(&EDGES, random) as i16;
            bytes[at + 2..at + 4].copy_from_slice(&offset.to_le_bytes());
        }
        3 => {
            let value = one_of(&EDGES, random);
            bytes[at + 4..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        4 => bytes.copy_within(other..other + INSTRUCTION, at),
        // A jump to the next one, which does nothing.
        5 => bytes[at..at + INSTRUCTION].copy_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0]),
        _ => bytes[at + 2..at + 8].fill(random.next() as u8),
    }
}
