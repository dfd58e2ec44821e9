//! Tree-PLRU: a binary tree of bits over the ways of a set that point away from recent use.

/// The trees of all sets of a cache.
///
/// Node 1 is the root, the children of node n are 2n and 2n + 1, and way w is the leaf
/// `ways + w`. Invariant: the bit of a node is 1 when the right half is the one to give up.
pub(super) struct Trees {
    bits: Vec<u64>,
    words_per_set: usize,
    ways: usize,
}

impl Trees {
    /// Trees that all point at way 0. `ways` is a power of two.
    pub(super) fn new(sets: usize, ways: usize) -> Trees {
        assert!(ways.is_power_of_two(), "a tree-PLRU cache of {ways} ways");
        let words_per_set = ways.div_ceil(64);
        Trees {
            bits: vec![0; sets * words_per_set],
            words_per_set,
            ways,
        }
    }

    /// Notes that `way` was used.
    #[inline]
    pub(super) fn point_away(&mut self, set: usize, way: usize) {
        let tree = &mut self.bits[set * self.words_per_set..][..self.words_per_set];
        let mut node = self.ways + way;
        while node > 1 {
            let came_from_right = node & 1;
            node /= 2;
            let (word, bit) = (&mut tree[node / 64], node % 64);
            *word = *word & !(1 << bit) | ((came_from_right ^ 1) as u64) << bit;
        }
    }

    /// The way that all bits point at.
    #[inline]
    pub(super) fn victim(&self, set: usize) -> usize {
        let tree = &self.bits[set * self.words_per_set..][..self.words_per_set];
        let mut node = 1;
        while node < self.ways {
            node = node * 2 + (tree[node / 64] >> (node % 64) & 1) as usize;
        }
        node - self.ways
    }
}
