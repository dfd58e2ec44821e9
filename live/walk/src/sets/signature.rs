//! Signatures: which of many random sets of lines evict a page's line.

use warmq_units::Stream;

use super::questions::Questions;
use super::{Answer, Plan, Unknown};

/// Questions that make a signature: a bit of a word each. Two sets agree in half of the bits, give
/// or take 4; two lines of one set in all but those few where the set was about to overflow.
const ROUNDS: u32 = u64::BITS;

/// Pages that are tried to find out how many lines evict half of them.
const SAMPLE: usize = 64;

/// Random sets of lines of each size that is tried.
const SETS_OF_A_SIZE: usize = 3;

/// Steps between the largest size that evicts less than half and twice that.
const BISECTIONS: u32 = 4;

/// One victim at a time for so many sets, so that victims hardly ever compete with each other.
const SETS_OF_A_VICTIM: usize = 4;

/// The most victims of one question: all of them together are to be far less than the cache.
const MOST_VICTIMS: usize = 256;

/// So many times the lines that evict half of the others evict all of them.
const ALL_HALVES: usize = 4;

/// How many more pages than those that evict half of the others must be classified: a class then
/// has about 3.5 times as many members as ways, and hardly ever too few to evict one of them.
const MEMBERS_HALVES: usize = 7;

/// The part of the search, in thousandths.
const SIZING: (u32, u32) = (0, 50);
const SIGNING: (u32, u32) = (50, 800);

/// The answers to [`ROUNDS`] questions about one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The rounds that evicted it.
    pub evicted: u64,
    /// The rounds whose answer is sure.
    pub sure: u64,
}

impl Signature {
    fn note(&mut self, round: u32, answer: Answer) {
        self.sure |= u64::from(answer != Answer::Unsure) << round;
        self.evicted |= u64::from(answer == Answer::Evicted) << round;
    }

    /// Rounds with sure answers that differ, and rounds with sure answers on both sides.
    pub fn compare(self, other: Signature) -> (u32, u32) {
        let both = self.sure & other.sure;
        (
            ((self.evicted ^ other.evicted) & both).count_ones(),
            both.count_ones(),
        )
    }
}

/// The wanted pages, and as many spare ones as it takes, with their signatures.
pub fn of_pages(
    questions: &mut Questions<'_>,
    random: &mut Stream,
) -> Result<Vec<(u32, Signature)>, Unknown> {
    questions.check_kept()?;
    let mut size = half_evicting(questions, random)?;
    questions.check_evicted(ALL_HALVES * size)?;
    let plan = questions.plan;
    let helpers = (size * MEMBERS_HALVES / 2).saturating_sub(plan.wanted.len());
    if plan.spare.len() < helpers + size {
        return Err(Unknown::NothingEvicts);
    }
    let (helpers, mut pool) = (&plan.spare[..helpers], plan.spare[helpers..].to_vec());
    // Victims in random order: a prefetcher would fetch the next ones of a regular one.
    let mut pages: Vec<u32> = [&plan.wanted, helpers].concat();
    random.shuffle(&mut pages);
    let victims = plan.lines(&pages);
    let mut signatures = vec![Signature::default(); pages.len()];
    let batch = victims_of(plan, size);
    for round in 0..ROUNDS {
        questions.progress(SIGNING, round as usize, ROUNDS as usize);
        let evictors = plan.lines(draw(&mut pool, size, random));
        let mut evicted = 0;
        for (victims, signed) in victims.chunks(batch).zip(signatures.chunks_mut(batch)) {
            let answers = questions.ask(&evictors, victims)?;
            let gone = answers.iter().filter(|answer| **answer == Answer::Evicted);
            evicted += gone.count();
            let answered = signed.iter_mut().zip(answers);
            answered.for_each(|(signature, answer)| signature.note(round, answer));
        }
        size = nearer_to_half(size, evicted, victims.len());
    }
    Ok(pages.into_iter().zip(signatures).collect())
}

/// The next size, where `evicted` of `asked` lines were evicted: what else runs changes with time.
fn nearer_to_half(size: usize, evicted: usize, asked: usize) -> usize {
    match evicted * 5 / asked.max(1) {
        0 | 1 => size + size.div_ceil(8),
        2 => size,
        _ => size - size / 8,
    }
}

/// How many random lines evict about half of all others.
fn half_evicting(questions: &mut Questions<'_>, random: &mut Stream) -> Result<usize, Unknown> {
    let plan = questions.plan;
    let (sample, pool) = plan.spare.split_at(SAMPLE.min(plan.spare.len()));
    let (sample, mut pool) = (plan.lines(sample), pool.to_vec());
    let mut evict_half = |size: usize| {
        questions.progress(SIZING, size.min(plan.spare.len()), plan.spare.len());
        let mut count = 0;
        for _ in 0..SETS_OF_A_SIZE {
            let evictors = plan.lines(draw(&mut pool, size, random));
            for victims in sample.chunks(victims_of(plan, size)) {
                let answers = questions.ask(&evictors, victims)?;
                let gone = answers.iter().filter(|answer| **answer == Answer::Evicted);
                count += gone.count();
            }
        }
        Ok(count * 2 >= sample.len() * SETS_OF_A_SIZE)
    };
    let mut size = plan.few();
    while !evict_half(2 * size)? {
        size *= 2;
        if 2 * size > plan.spare.len() {
            return Err(Unknown::NothingEvicts);
        }
    }
    let (mut below, mut above) = (size, 2 * size);
    for _ in 0..BISECTIONS {
        let middle = usize::midpoint(below, above);
        if evict_half(middle)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Ok(above)
}

/// How many lines may be victims at once where `size` lines evict half of all.
fn victims_of(plan: &Plan, size: usize) -> usize {
    (size / plan.ways as usize / SETS_OF_A_VICTIM).clamp(1, MOST_VICTIMS)
}

/// `size` different pages of `pool`, in random order, which it begins with afterwards.
fn draw<'pool>(pool: &'pool mut [u32], size: usize, random: &mut Stream) -> &'pool [u32] {
    let size = size.min(pool.len());
    for index in 0..size {
        let other = index as u64 + random.below((pool.len() - index) as u64);
        pool.swap(index, other as usize);
    }
    &pool[..size]
}
