//! Classes of pages that share their sets, line by line.

use super::signature::Signature;
use super::{Answer, GoOn, Oracle, Plan, Unknown, step};

/// Signatures of one set differ in less than one sure round in so many.
const APART: u32 = 4;

/// Sure rounds without which a signature says too little.
const LEAST_SURE: u32 = 24;

/// How often a page is asked, each time with other members, before it is given up.
const TRIES: usize = 3;

/// The share of wanted pages, in percent, that must be confirmed for the result to be believed.
const ENOUGH_PERCENT: usize = 70;

/// The part of the search, in thousandths.
const CONFIRMING: (u32, u32) = (800, 900);

/// Pages that evict each other.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// More pages than the cache has ways; the others evict each.
    pub members: Vec<u32>,
}

impl Class {
    /// Members that are surely enough to evict a line of their set, none of them `but`; others for
    /// another `turn`.
    pub fn evictors(&self, plan: &Plan, but: u32, turn: usize) -> Vec<u32> {
        // More than the ways, as a cache that does not replace in strict order needs more; less than
        // twice the ways, so that an even mixture of two classes evicts neither.
        let count = plan.ways as usize * 3 / 2;
        let from = turn * count / 2 % self.members.len();
        let (before, after) = self.members.split_at(from);
        let turned = after.iter().chain(before).copied();
        turned.filter(|page| *page != but).take(count).collect()
    }
}

/// Groups pages by signature, and keeps those that their class really evicts.
pub fn confirmed(
    oracle: &mut dyn Oracle,
    plan: &Plan,
    signed: &[(u32, Signature)],
    go_on: GoOn<'_>,
) -> Result<Vec<Class>, Unknown> {
    let mut classes = grouped(plan, signed);
    let total = classes.len();
    for (done, class) in classes.iter_mut().enumerate() {
        step(go_on, CONFIRMING, done, total)?;
        let all = class.clone();
        class
            .members
            .retain(|page| is_evicted(oracle, plan, &all, *page));
    }
    classes.retain(|class| class.members.len() > plan.ways as usize);
    let known: usize = classes.iter().map(|class| class.members.len()).sum();
    if known * 100 < signed.len() * ENOUGH_PERCENT {
        return Err(Unknown::TooFew);
    }
    Ok(classes)
}

fn is_evicted(oracle: &mut dyn Oracle, plan: &Plan, class: &Class, page: u32) -> bool {
    (0..TRIES).any(|turn| {
        let evictors = plan.lines(&class.evictors(plan, page, turn));
        oracle.ask(&evictors, &plan.lines(&[page]))[..] == [Answer::Evicted]
    })
}

/// Pages by the signature that is nearest: first to that of whichever page came first, then to that
/// of the majority of a class.
fn grouped(plan: &Plan, signed: &[(u32, Signature)]) -> Vec<Class> {
    let mut leaders: Vec<Signature> = Vec::new();
    let mut votes: Vec<Votes> = Vec::new();
    for (_, signature) in signed {
        let class = nearest(&leaders, *signature);
        let class = class.or_else(|| {
            let room = leaders.len() < 2 * plan.sets as usize;
            (room && signature.sure.count_ones() >= LEAST_SURE).then(|| {
                leaders.push(*signature);
                votes.push(Votes::default());
                leaders.len() - 1
            })
        });
        if let Some(class) = class {
            votes[class].count(*signature);
        }
    }
    votes.retain(|votes| votes.members > plan.ways / 2);
    let centers: Vec<Signature> = votes.iter().map(Votes::majority).collect();
    let mut classes = vec![Class::default(); centers.len()];
    for (page, signature) in signed {
        if let Some(class) = nearest(&centers, *signature) {
            classes[class].members.push(*page);
        }
    }
    classes.retain(|class| class.members.len() > plan.ways as usize);
    classes
}

/// The signature that differs least from `one`, if any is near.
fn nearest(all: &[Signature], one: Signature) -> Option<usize> {
    let compared = all.iter().enumerate().filter_map(|(index, other)| {
        let (apart, sure) = one.compare(*other);
        let near = sure >= LEAST_SURE && apart * APART < sure;
        near.then(|| (u64::from(apart << 16) / u64::from(sure), index))
    });
    compared.min().map(|(_, index)| index)
}

/// What the members of a class say of each round.
#[derive(Clone)]
struct Votes {
    members: u32,
    balance: [i32; u64::BITS as usize],
}

impl Default for Votes {
    fn default() -> Votes {
        Votes {
            members: 0,
            balance: [0; u64::BITS as usize],
        }
    }
}

impl Votes {
    fn count(&mut self, signature: Signature) {
        self.members += 1;
        for (round, balance) in self.balance.iter_mut().enumerate() {
            let bit = |word: u64| (word >> round & 1) as i32;
            *balance += bit(signature.sure) * (2 * bit(signature.evicted) - 1);
        }
    }

    /// A round is sure where one side leads by more than a third of the members.
    fn majority(&self) -> Signature {
        let mut signature = Signature::default();
        for (round, balance) in self.balance.iter().enumerate() {
            let sure = balance.unsigned_abs() * 3 > self.members;
            signature.sure |= u64::from(sure) << round;
            signature.evicted |= u64::from(sure && *balance > 0) << round;
        }
        signature
    }
}
