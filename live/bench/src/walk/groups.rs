//! Sorts pages by the cache sets that they really use.
//!
//! What a virtual machine takes for a physical address is none: the hypervisor puts each of its
//! pages where it has room. Only the low bits of the small page are then known to choose the set.
//! The rest can be found out: pages that throw each other out of the cache share their sets. The
//! search for such groups is Vila, Köpf, Morales, "Theory and Practice of Finding Eviction Sets",
//! IEEE S&P 2019: as long as a set of pages evicts a page, leave out what is not needed for it.
//!
//! Only the search is here; whether pages evict a page is asked of an oracle, so that a test can
//! put a made-up cache in place of the real one.

/// How many times the ways of the cache are surely enough to evict a page. A cache that does not
/// replace in strict order needs more than its ways.
const ENOUGH: usize = 2;

/// How many times the ways of the cache may be left of the evicting pages of a founder.
const FEW: usize = 3;

/// How often a page is asked for its group when none or several seem to be it.
const TRIES: u32 = 3;

/// How often a founding is tried that comes to nothing before the search ends.
const FAILURES: u32 = 300;

/// Answers whether reading all the pages of the first list throws the second page out.
pub trait Oracle {
    /// True where reading the pages of `pages` over and over evicts `victim` from the cache.
    fn evicts(&mut self, pages: &[u32], victim: u32) -> bool;
    /// True where reading them hardly more than once does, every time.
    fn evicts_at_once(&mut self, pages: &[u32], victim: u32) -> bool;
}

/// Groups of pages that share their cache sets.
///
/// Invariant: each group has more pages than the cache has ways, and no page is in two.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: Vec<Vec<u32>>,
    ways: usize,
}

impl Groups {
    /// Finds up to `expected` groups among `pool`, in a cache of `ways` ways. Ends early when
    /// what is left of the pool makes no group any more, or `give_up` says so.
    pub fn find(
        oracle: &mut dyn Oracle,
        mut pool: Vec<u32>,
        ways: u32,
        expected: usize,
        give_up: &dyn Fn() -> bool,
    ) -> Groups {
        let mut found = Groups {
            groups: Vec::new(),
            ways: ways as usize,
        };
        let mut failures = 0;
        while found.groups.len() < expected && failures < FAILURES && !give_up() {
            let Some(founder) = pool.pop() else { break };
            if let Some(group) = found.evicting(oracle, founder).first() {
                found.groups[*group as usize].push(founder);
                continue;
            }
            match found.evictors_of(oracle, &pool, founder) {
                Some(evictors) => {
                    let group = members(oracle, &mut pool, evictors, founder);
                    found.groups.push(group);
                }
                None => {
                    pool.insert(0, founder);
                    failures += 1;
                }
            }
        }
        found.groups.retain(|group| group.len() > ways as usize);
        found
    }

    /// How many groups were found.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// The group whose pages evict `page`, if there is exactly one such.
    pub fn group_of(&self, oracle: &mut dyn Oracle, page: u32) -> Option<u32> {
        (0..TRIES).find_map(|_| match self.evicting(oracle, page)[..] {
            [only] => Some(only),
            _ => None,
        })
    }

    /// Every group whose pages evict `page`.
    fn evicting(&self, oracle: &mut dyn Oracle, page: u32) -> Vec<u32> {
        let all = self.groups.iter().zip(0..);
        let evicting = all.filter(|(group, _)| {
            let others = group.iter().copied().filter(|member| *member != page);
            let evictors: Vec<u32> = others.take(self.ways * ENOUGH).collect();
            oracle.evicts(&evictors, page)
        });
        evicting.map(|(_, index)| index).collect()
    }

    /// The fewest pages of `pool` that evict `founder`; `None` when the pool has not enough.
    fn evictors_of(&self, oracle: &mut dyn Oracle, pool: &[u32], founder: u32) -> Option<Vec<u32>> {
        let mut evictors = pool.to_vec();
        if !oracle.evicts_at_once(&evictors, founder) {
            return None;
        }
        let mut part = evictors.len().div_ceil(self.ways * ENOUGH);
        while evictors.len() > self.ways && part > 0 {
            match leave_out(oracle, &evictors, founder, part) {
                Some(rest) => evictors = rest,
                None => part /= 2,
            }
            part = part.min(evictors.len().div_ceil(self.ways * ENOUGH));
        }
        (evictors.len() <= self.ways * FEW).then_some(evictors)
    }
}

/// `evictors` without `part` of them, still evicting; `None` where no such part can be spared.
fn leave_out(
    oracle: &mut dyn Oracle,
    evictors: &[u32],
    founder: u32,
    part: usize,
) -> Option<Vec<u32>> {
    (0..evictors.len()).step_by(part).find_map(|start| {
        let end = (start + part).min(evictors.len());
        let rest = [&evictors[..start], &evictors[end..]].concat();
        oracle.evicts_at_once(&rest, founder).then_some(rest)
    })
}

/// Takes out of `pool` every page that `evictors` evict: with these and `founder` the whole group.
fn members(
    oracle: &mut dyn Oracle,
    pool: &mut Vec<u32>,
    evictors: Vec<u32>,
    founder: u32,
) -> Vec<u32> {
    pool.retain(|page| !evictors.contains(page));
    let mut group = vec![founder];
    pool.retain(|page| {
        let belongs = oracle.evicts(&evictors, *page);
        if belongs {
            group.push(*page);
        }
        !belongs
    });
    // Among the evictors some may have been along by chance.
    for (index, page) in evictors.iter().enumerate() {
        let others = [&group[..], &evictors[..index], &evictors[index + 1..]].concat();
        let list = if oracle.evicts(&others, *page) {
            &mut group
        } else {
            &mut *pool
        };
        list.push(*page);
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_units::{Seed, Stream};

    /// A cache of true LRU whose pages have random groups.
    struct MadeUp {
        group: Vec<u32>,
        ways: usize,
        wrong_in_thousand: u64,
        noise: Stream,
    }

    impl Oracle for MadeUp {
        fn evicts(&mut self, pages: &[u32], victim: u32) -> bool {
            let group = self.group[victim as usize];
            let rivals = pages
                .iter()
                .filter(|page| self.group[**page as usize] == group)
                .count();
            (rivals >= self.ways) ^ self.noise.chance(self.wrong_in_thousand, 1000)
        }

        fn evicts_at_once(&mut self, pages: &[u32], victim: u32) -> bool {
            self.evicts(pages, victim)
        }
    }

    fn made_up(pages: u32, groups: u64, ways: usize, wrong_in_thousand: u64) -> MadeUp {
        let mut random = Seed(5).stream("groups");
        let group = (0..pages).map(|_| random.below(groups) as u32).collect();
        MadeUp {
            group,
            ways,
            wrong_in_thousand,
            noise: Seed(5).stream("noise"),
        }
    }

    #[test]
    fn every_page_is_put_with_those_it_shares_sets_with() {
        for (groups, ways) in [(2, 4), (8, 8), (32, 16)] {
            let pool = groups * ways as u32 * 3;
            let mut cache = made_up(pool * 2, u64::from(groups), ways, 0);
            let found = Groups::find(
                &mut cache,
                (0..pool).collect(),
                ways as u32,
                groups as usize,
                &|| false,
            );
            assert_eq!(found.count(), groups as usize);
            let names: Vec<_> = (0..pool * 2)
                .map(|page| found.group_of(&mut cache, page).unwrap())
                .collect();
            for page in 1..pool as usize * 2 {
                let together = cache.group[page] == cache.group[page - 1];
                assert_eq!(
                    names[page] == names[page - 1],
                    together,
                    "pages {page} and before"
                );
            }
        }
    }

    #[test]
    fn a_pool_too_small_makes_no_group() {
        let mut cache = made_up(8, 1, 16, 0);
        assert_eq!(
            Groups::find(&mut cache, (0..8).collect(), 16, 1, &|| false).count(),
            0
        );
    }

    #[test]
    fn a_few_wrong_answers_do_not_hang_the_search() {
        let mut cache = made_up(1000, 8, 8, 10);
        assert!(Groups::find(&mut cache, (0..1000).collect(), 8, 8, &|| false).count() <= 8);
    }
}
