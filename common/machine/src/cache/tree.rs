//! Tree-PLRU: a binary tree of bits over the ways of a set that point away from recent use.

/// Bits in a word, and the most ways whose tree is one word.
const WORD: usize = 16;

/// Where the trees of all sets of a cache are, among those of all caches.
///
/// Node 1 is the root, the children of node n are 2n and 2n + 1, and way w is the leaf
/// `ways + w`. Invariant: the bit of a node is 1 when the right half is the one to give up.
pub(crate) struct Trees {
    first: usize,
    words_per_set: usize,
    ways: usize,
}

/// What the use of a way changes in a tree of one word.
#[derive(Clone, Copy)]
struct Path {
    /// The nodes above the way.
    nodes: u16,
    /// Those of them whose left half the way is in.
    point_right: u16,
}

/// The paths by the logarithm of the ways, and the way.
static PATHS: [[Path; WORD]; 5] = paths();

const fn paths() -> [[Path; WORD]; 5] {
    let empty = Path {
        nodes: 0,
        point_right: 0,
    };
    let mut paths = [[empty; WORD]; 5];
    let mut log = 0;
    while log < 5 {
        let ways = 1 << log;
        let mut way = 0;
        while way < ways {
            let mut node = ways + way;
            while node > 1 {
                let from_left = node & 1 == 0;
                node /= 2;
                paths[log][way].nodes |= 1 << node;
                paths[log][way].point_right |= (from_left as u16) << node;
            }
            way += 1;
        }
        log += 1;
    }
    paths
}

impl Trees {
    /// Takes room at the end of `bits` for trees that all point at way 0. `ways` is a power of two.
    pub(super) fn new(bits: &mut Vec<u16>, sets: usize, ways: usize) -> Trees {
        assert!(ways.is_power_of_two(), "a tree-PLRU cache of {ways} ways");
        let (first, words_per_set) = (bits.len(), ways.div_ceil(WORD));
        bits.resize(first + sets * words_per_set, 0);
        Trees {
            first,
            words_per_set,
            ways,
        }
    }

    /// Where the tree of set 0 is.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Notes that `way` was used.
    #[inline]
    pub(super) fn point_away(&self, bits: &mut [u16], set: usize, way: usize) {
        if self.words_per_set == 1 {
            let path = PATHS[self.ways.ilog2() as usize][way];
            let tree = &mut bits[self.first + set];
            *tree = *tree & !path.nodes | path.point_right;
        } else {
            self.point_away_wide(bits, set, way);
        }
    }

    #[cold]
    fn point_away_wide(&self, bits: &mut [u16], set: usize, way: usize) {
        let tree = &mut bits[self.first + set * self.words_per_set..][..self.words_per_set];
        let mut node = self.ways + way;
        while node > 1 {
            let from_left = u16::from(node & 1 == 0);
            node /= 2;
            let (word, bit) = (&mut tree[node / WORD], node % WORD);
            *word = *word & !(1 << bit) | from_left << bit;
        }
    }

    /// The way that all bits point at.
    #[inline]
    pub(super) fn victim(&self, bits: &[u16], set: usize) -> usize {
        let tree = &bits[self.first + set * self.words_per_set..][..self.words_per_set];
        let mut node = 1;
        while node < self.ways {
            node = node * 2 + usize::from(tree[node / WORD] >> (node % WORD) & 1);
        }
        node - self.ways
    }
}

/// The same as [`Trees::point_away`] of one `tree` of `WAYS` ways, 16 at most.
#[inline(always)]
pub(super) fn use_way<const WAYS: usize>(tree: &mut u16, way: usize) {
    let path = PATHS[const { WAYS.ilog2() as usize }][way % WAYS];
    *tree = *tree & !path.nodes | path.point_right;
}

/// The same as [`Trees::victim`] of one `tree` of `WAYS` ways, 16 at most.
#[inline(always)]
pub(super) fn victim_of<const WAYS: usize>(tree: u16) -> usize {
    let (tree, mut node) = (usize::from(tree), 1);
    for _ in 0..const { WAYS.ilog2() } {
        node = node * 2 + (tree >> node & 1);
    }
    node - WAYS
}
