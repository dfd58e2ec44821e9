//! Classes of pages that share their sets, line by line.

use super::questions::{Decision, Questions};
use super::signature::Signature;
use super::{Line, Plan, Unknown};

/// Signatures of two pages of one set differ in less than one sure round in so many.
const APART: u32 = 4;

/// A page's signature differs from that of the majority of its class in less than one sure round in
/// so many. More than [`APART`] allows, as votes follow: a cache that replaces at random answers
/// one question in six this way or that.
const APART_FROM_CLASS: u32 = 3;

/// Sure rounds without which a signature says too little.
const LEAST_SURE: u32 = 24;

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
    pub fn evictors(&self, plan: &Plan, but: Option<u32>, turn: usize) -> Vec<Line> {
        // More than the ways, as a cache that does not replace in strict order needs more; less
        // than twice the ways, so that an even mixture of two classes evicts neither.
        let count = plan.ways as usize * 3 / 2;
        let from = turn * count / 2 % self.members.len();
        let (before, after) = self.members.split_at(from);
        let turned = after.iter().chain(before).copied();
        let others = turned.filter(|page| Some(*page) != but);
        plan.lines(&others.take(count).collect::<Vec<u32>>())
    }

    /// A member for this `turn`.
    pub fn member(&self, turn: usize) -> u32 {
        self.members[turn % self.members.len()]
    }
}

/// Groups pages by signature, and keeps those that their class really evicts.
pub fn confirmed(
    questions: &mut Questions<'_>,
    signed: &[(u32, Signature)],
) -> Result<Vec<Class>, Unknown> {
    let plan = questions.plan;
    let mut classes = Vec::new();
    let grouped = grouped(plan, signed);
    for (done, class) in grouped.iter().enumerate() {
        questions.progress(CONFIRMING, done, grouped.len());
        let mut members = Vec::new();
        for page in &class.members {
            if is_evicted(questions, class, *page)? {
                members.push(*page);
            }
        }
        classes.push(Class { members });
    }
    classes.retain(|class| class.members.len() > plan.ways as usize);
    let known: usize = classes.iter().map(|class| class.members.len()).sum();
    if known * 100 < signed.len() * ENOUGH_PERCENT {
        return Err(Unknown::TooFew);
    }
    Ok(classes)
}

fn is_evicted(questions: &mut Questions<'_>, class: &Class, page: u32) -> Result<bool, Unknown> {
    let plan = questions.plan;
    let victim = plan.lines(&[page])[0];
    let decided = questions.decide(|turn| (class.evictors(plan, Some(page), turn), victim))?;
    Ok(decided == Decision::Evicted)
}

/// Pages by the signature that is nearest: first to that of whichever page came first, then to that
/// of the majority of a class.
fn grouped(plan: &Plan, signed: &[(u32, Signature)]) -> Vec<Class> {
    let mut leaders: Vec<Signature> = Vec::new();
    let mut votes: Vec<Votes> = Vec::new();
    for (_, signature) in signed {
        let class = nearest(&leaders, *signature, APART);
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
        if let Some(class) = nearest(&centers, *signature, APART_FROM_CLASS) {
            classes[class].members.push(*page);
        }
    }
    classes.retain(|class| class.members.len() > plan.ways as usize);
    classes
}

/// The signature that differs least from `one`, if any differs in less than one round in `share`.
fn nearest(all: &[Signature], one: Signature, share: u32) -> Option<usize> {
    let compared = all.iter().enumerate().filter_map(|(index, other)| {
        let (apart, sure) = one.compare(*other);
        let near = sure >= LEAST_SURE && apart * share < sure;
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
