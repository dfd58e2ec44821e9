//! The address spaces of which a CPU keeps translations.

use crate::words::Mm;

/// Of how many (`TLB_NR_DYN_ASIDS`: since Linux 4.15 on processors that tell translations of
/// different address spaces from each other).
const KEPT: usize = 6;

/// Places are given out in turn, and whatever was in one is forgotten (`choose_new_asid()`).
#[derive(Default)]
pub(crate) struct AddressSpaces {
    /// The one that is loaded; kernel threads and the idle task borrow it.
    active: Option<Mm>,
    kept: [Option<Mm>; KEPT],
    next: usize,
}

/// What is done to have an address space loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Nothing: it is loaded.
    No,
    /// Its translations were kept.
    Kept,
    /// It starts without any.
    Anew,
}

impl AddressSpaces {
    pub(crate) fn active(&self) -> Option<Mm> {
        self.active
    }

    pub(crate) fn load(&mut self, mm: Mm) -> Load {
        if self.active == Some(mm) {
            return Load::No;
        }
        self.active = Some(mm);
        if self.kept.contains(&Some(mm)) {
            return Load::Kept;
        }
        self.kept[self.next] = Some(mm);
        self.next = (self.next + 1) % KEPT;
        Load::Anew
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_are_kept_and_the_one_that_came_first_goes_first() {
        let mut spaces = AddressSpaces::default();
        let mut load = |numbers: &[u32]| {
            let all = numbers.iter().map(|number| spaces.load(Mm(*number)));
            all.collect::<Vec<_>>()
        };
        assert_eq!(load(&[0, 1, 2, 3, 4, 5]), [Load::Anew; 6]);
        assert_eq!(load(&[5, 0, 0]), [Load::No, Load::Kept, Load::No]);
        assert_eq!(load(&[6, 1, 0]), [Load::Anew, Load::Kept, Load::Anew]);
        assert_eq!(load(&[1]), [Load::Anew], "0 took its place");
    }
}
