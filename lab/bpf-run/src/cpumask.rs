//! `bpf_cpumask_...`: sets of CPUs in guest memory.

use crate::ending::Ending;
use crate::guest::Guest;
use crate::kernel::{Access, Kernel};

/// Bytes of a `struct bpf_cpumask` of 8,192 CPUs, and where its count of users is.
const BYTES: u64 = 1040;
const USERS: u64 = 1024;

/// What a kfunc does with masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    Create,
    Acquire,
    Release,
    Set,
    Clear,
    Test,
    TestAndSet,
    TestAndClear,
    SetAll,
    ClearAll,
    And,
    Or,
    Xor,
    Copy,
    Equal,
    Intersects,
    Subset,
    Empty,
    Full,
    First,
    FirstZero,
    FirstAnd,
    AnyDistribute,
    AnyAndDistribute,
    Weight,
}

/// Kfuncs by their names.
pub(crate) const KFUNCS: &[(&str, Mask)] = &[
    ("bpf_cpumask_create", Mask::Create),
    ("bpf_cpumask_acquire", Mask::Acquire),
    ("bpf_cpumask_release", Mask::Release),
    ("bpf_cpumask_set_cpu", Mask::Set),
    ("bpf_cpumask_clear_cpu", Mask::Clear),
    ("bpf_cpumask_test_cpu", Mask::Test),
    ("bpf_cpumask_test_and_set_cpu", Mask::TestAndSet),
    ("bpf_cpumask_test_and_clear_cpu", Mask::TestAndClear),
    ("bpf_cpumask_setall", Mask::SetAll),
    ("bpf_cpumask_clear", Mask::ClearAll),
    ("bpf_cpumask_and", Mask::And),
    ("bpf_cpumask_or", Mask::Or),
    ("bpf_cpumask_xor", Mask::Xor),
    ("bpf_cpumask_copy", Mask::Copy),
    ("bpf_cpumask_equal", Mask::Equal),
    ("bpf_cpumask_intersects", Mask::Intersects),
    ("bpf_cpumask_subset", Mask::Subset),
    ("bpf_cpumask_empty", Mask::Empty),
    ("bpf_cpumask_full", Mask::Full),
    ("bpf_cpumask_first", Mask::First),
    ("bpf_cpumask_first_zero", Mask::FirstZero),
    ("bpf_cpumask_first_and", Mask::FirstAnd),
    ("bpf_cpumask_any_distribute", Mask::AnyDistribute),
    ("bpf_cpumask_any_and_distribute", Mask::AnyAndDistribute),
    ("bpf_cpumask_weight", Mask::Weight),
];

/// The words of a mask that CPUs have.
struct Words<'g, K> {
    guest: &'g mut Guest,
    kernel: &'g mut K,
    cpus: u32,
}

impl<K: Kernel> Words<'_, K> {
    fn count(&self) -> u64 {
        u64::from(self.cpus.div_ceil(64))
    }

    /// The bits of a word that CPUs have.
    fn valid(&self, at: u64) -> u64 {
        match u64::from(self.cpus) - at * 64 {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        }
    }

    fn get(&mut self, mask: u64, at: u64) -> u64 {
        let address = mask.wrapping_add(at * 8);
        self.kernel.charge(address, 8, Access::Load);
        let valid = self.valid(at);
        self.guest.load(address, 8) & valid
    }

    fn put(&mut self, mask: u64, at: u64, value: u64) -> Result<(), Ending> {
        let address = mask.wrapping_add(at * 8);
        self.kernel.charge(address, 8, Access::Store);
        let value = value & self.valid(at);
        self.guest.store(address, 8, value)
    }

    /// Writes each word of `to`; whether one is not 0.
    fn fill(
        &mut self,
        to: u64,
        mut word: impl FnMut(&mut Self, u64) -> u64,
    ) -> Result<u64, Ending> {
        let mut any = 0;
        for at in 0..self.count() {
            let value = word(self, at);
            self.put(to, at, value)?;
            any |= value & self.valid(at);
        }
        Ok(u64::from(any != 0))
    }

    /// The first CPU of those in `word`, or how many CPUs there are.
    fn first(&mut self, word: impl Fn(&mut Self, u64) -> u64) -> u64 {
        self.first_from(0, word)
    }

    fn first_from(&mut self, from: u64, word: impl Fn(&mut Self, u64) -> u64) -> u64 {
        for at in from / 64..self.count() {
            let after = if at == from / 64 {
                u64::MAX << (from % 64)
            } else {
                u64::MAX
            };
            let value = word(self, at) & self.valid(at) & after;
            if value != 0 {
                return at * 64 + u64::from(value.trailing_zeros());
            }
        }
        self.cpus.into()
    }

    /// A CPU of those in `word`, a different one each time (`cpumask_any_distribute()`).
    fn any(&mut self, word: impl Fn(&mut Self, u64) -> u64) -> u64 {
        let from = u64::from(self.kernel.turn());
        let mut found = self.first_from(from, &word);
        if found >= self.cpus.into() {
            found = self.first(word);
        }
        if found < self.cpus.into() {
            self.kernel.took(found as u32);
        }
        found
    }

    fn holds(&mut self, word: impl Fn(&mut Self, u64) -> bool) -> u64 {
        u64::from((0..self.count()).all(|at| word(self, at)))
    }

    /// One CPU's bit of a mask: whether it was set; `set` says what it becomes.
    fn bit(&mut self, cpu: u64, mask: u64, set: Option<bool>) -> Result<u64, Ending> {
        let cpu = u64::from(cpu as u32);
        if cpu >= self.cpus.into() {
            return Ok(0);
        }
        let address = mask.wrapping_add(cpu / 64 * 8);
        let access = if set.is_some() {
            Access::Atomic
        } else {
            Access::Load
        };
        self.kernel.charge(address, 8, access);
        let (old, bit) = (self.guest.load(address, 8), 1 << (cpu % 64));
        match set {
            Some(true) => self.guest.store(address, 8, old | bit)?,
            Some(false) => self.guest.store(address, 8, old & !bit)?,
            None => {}
        }
        Ok(u64::from(old & bit != 0))
    }
}

pub(crate) fn run<K: Kernel>(
    mask: Mask,
    [a, b, c, _, _]: [u64; 5],
    guest: &mut Guest,
    kernel: &mut K,
) -> Result<u64, Ending> {
    let cpus = guest.cpus();
    let mut words = Words {
        guest,
        kernel,
        cpus,
    };
    Ok(match mask {
        Mask::Create => return create(words.guest),
        Mask::Acquire => return users(words.guest, a, 1),
        Mask::Release => return users(words.guest, a, u64::MAX),
        Mask::Set | Mask::TestAndSet => words.bit(a, b, Some(true))?,
        Mask::Clear | Mask::TestAndClear => words.bit(a, b, Some(false))?,
        Mask::Test => words.bit(a, b, None)?,
        Mask::SetAll => words.fill(a, |_, _| u64::MAX)?,
        Mask::ClearAll => words.fill(a, |_, _| 0)?,
        Mask::And => words.fill(a, |words, at| words.get(b, at) & words.get(c, at))?,
        Mask::Or => words.fill(a, |words, at| words.get(b, at) | words.get(c, at))?,
        Mask::Xor => words.fill(a, |words, at| words.get(b, at) ^ words.get(c, at))?,
        Mask::Copy => words.fill(a, |words, at| words.get(b, at))?,
        Mask::Equal => words.holds(|words, at| words.get(a, at) == words.get(b, at)),
        Mask::Subset => words.holds(|words, at| words.get(a, at) & !words.get(b, at) == 0),
        Mask::Intersects => 1 - words.holds(|words, at| words.get(a, at) & words.get(b, at) == 0),
        Mask::Empty => words.holds(|words, at| words.get(a, at) == 0),
        Mask::Full => words.holds(|words, at| words.get(a, at) == words.valid(at)),
        Mask::First => words.first(|words, at| words.get(a, at)),
        Mask::FirstZero => words.first(|words, at| !words.get(a, at)),
        Mask::FirstAnd => words.first(|words, at| words.get(a, at) & words.get(b, at)),
        Mask::AnyDistribute => words.any(|words, at| words.get(a, at)),
        Mask::AnyAndDistribute => words.any(|words, at| words.get(a, at) & words.get(b, at)),
        Mask::Weight => (0..words.count())
            .map(|at| u64::from(words.get(a, at).count_ones()))
            .sum(),
    })
}

/// A new mask with one user; 0, if memory is used up.
fn create(guest: &mut Guest) -> Result<u64, Ending> {
    let Ok(mask) = guest.allocate(BYTES) else {
        return Ok(0);
    };
    guest.store(mask + USERS, 4, 1)?;
    Ok(mask)
}

/// Counts a user more or less; the last one frees the mask.
fn users(guest: &mut Guest, mask: u64, more: u64) -> Result<u64, Ending> {
    let users = (guest.load(mask.wrapping_add(USERS), 4) as u32).wrapping_add(more as u32);
    guest.store(mask.wrapping_add(USERS), 4, users.into())?;
    if users == 0 {
        guest.free(mask, BYTES);
    }
    Ok(mask)
}
