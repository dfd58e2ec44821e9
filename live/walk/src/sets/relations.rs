//! Which class shares its sets with which other one, at the same line or at another.

use std::collections::{BTreeMap, BTreeSet};

use super::classes::Class;
use super::questions::{Decision, Questions};
use super::{Answer, Line, Sets, Unknown};

/// The part of the search, in thousandths.
const RELATING: (u32, u32) = (900, 1000);

/// How often all pairs of classes are asked, many at once, to find those that are worth votes; and
/// how many of these must see an eviction.
const SCREENS: usize = 3;
const SEEN: usize = 2;

/// Victims of one of these questions at most, so that none takes long.
const VICTIMS: usize = 64;

/// Two classes, and by how much the numbers of their lines differ where they may share a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    one: usize,
    other: usize,
    change: u32,
}

/// Joins the lines of all classes into sets: line `l` of a page of class A and line `l ^ change` of
/// one of class B are in the same set if each evicts the other at one `l`, as an index that is an
/// exclusive or of address bits does not care at which. It is asked for no change, which finds
/// classes that are one, and for each change of one bit.
pub fn sets(questions: &mut Questions<'_>, classes: &[Class]) -> Result<Sets, Unknown> {
    let lines = questions.plan.lines_of_page;
    let mut joined = Joined::new(classes.len() * lines as usize);
    let mut open = Vec::new();
    for pair in pairs(questions, classes)? {
        if joined.root(pair.line_of_one(0, lines)) == joined.root(pair.line_of_other(0, lines)) {
            continue;
        }
        match related(questions, classes, pair)? {
            Decision::Kept => (),
            Decision::Open => open.push(pair),
            Decision::Evicted => (0..lines).for_each(|line| {
                joined.join(
                    pair.line_of_one(line, lines),
                    pair.line_of_other(line, lines),
                );
            }),
        }
    }
    let (joined_to, _) = joined.numbered();
    numbered(questions, classes, &joined_to, &open)
}

impl Pair {
    fn line_of_one(self, line: u32, lines: u32) -> usize {
        self.one * lines as usize + line as usize
    }

    fn line_of_other(self, line: u32, lines: u32) -> usize {
        self.other * lines as usize + (line ^ self.change) as usize
    }
}

/// The sets of all classes about which nothing is open, numbered from 0.
fn numbered(
    questions: &Questions<'_>,
    classes: &[Class],
    joined_to: &[u32],
    open: &[Pair],
) -> Result<Sets, Unknown> {
    let lines = questions.plan.lines_of_page as usize;
    let of = |class: usize| &joined_to[class * lines..(class + 1) * lines];
    if !(0..classes.len()).all(|class| all_differ(of(class))) {
        return Err(Unknown::Contradiction);
    }
    let given_up = given_up(classes, joined_to, open, lines);
    let kept = connected(joined_to, lines).into_iter();
    let kept: Vec<usize> = kept.filter(|class| !given_up.contains(class)).collect();
    let mut numbers = BTreeMap::new();
    let mut number = |set: &u32| {
        let next = numbers.len() as u32;
        *numbers.entry(*set).or_insert(next)
    };
    let all = kept.iter().flat_map(|class| of(*class));
    let set_of: Vec<u32> = all.map(&mut number).collect();
    if numbers.len() > questions.plan.sets as usize {
        return Err(Unknown::Contradiction);
    }
    let of_class = |(class, number): (&usize, u32)| {
        let pages = classes[*class].members.clone().into_iter();
        pages.map(move |page| (page, number))
    };
    let mut class_of: Vec<(u32, u32)> = kept.iter().zip(0..).flat_map(of_class).collect();
    class_of.sort_unstable();
    Ok(Sets {
        class_of,
        set_of,
        lines_of_page: questions.plan.lines_of_page,
    })
}

/// The smaller class of each pair of which nobody knows whether it shares a set.
fn given_up(classes: &[Class], joined_to: &[u32], open: &[Pair], lines: usize) -> BTreeSet<usize> {
    let apart = |pair: &&Pair| {
        let lines = lines as u32;
        joined_to[pair.line_of_one(0, lines)] != joined_to[pair.line_of_other(0, lines)]
    };
    let smaller = |pair: &Pair| {
        let size = |class: usize| classes[class].members.len();
        if size(pair.one) < size(pair.other) {
            pair.one
        } else {
            pair.other
        }
    };
    open.iter().filter(apart).map(smaller).collect()
}

/// The classes whose relations are known.
///
/// With `k` hashed bits within a page, a set has lines of `2^k` different numbers. It was found
/// with fewer where answers were lost; as long as they are more than half, no others can be a part
/// of the same set that nobody noticed. Where they are not, the class is given up.
fn connected(joined_to: &[u32], lines: usize) -> Vec<usize> {
    let places = joined_to.iter().enumerate();
    let places: BTreeSet<(u32, usize)> = places.map(|(at, set)| (*set, at % lines)).collect();
    let mut size: BTreeMap<u32, usize> = BTreeMap::new();
    for (set, _) in places {
        *size.entry(set).or_insert(0) += 1;
    }
    let whole = size
        .values()
        .copied()
        .max()
        .unwrap_or(0)
        .next_power_of_two();
    let classes = 0..joined_to.len() / lines;
    let is_connected = |class: &usize| size[&joined_to[class * lines]] * 2 > whole;
    classes.filter(is_connected).collect()
}

fn all_differ(sets: &[u32]) -> bool {
    let mut sets = sets.to_vec();
    sets.sort_unstable();
    sets.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether two classes share a set: both evict each other, or neither does.
fn related(
    questions: &mut Questions<'_>,
    classes: &[Class],
    Pair { one, other, change }: Pair,
) -> Result<Decision, Unknown> {
    let there = evicts(questions, &classes[one], &classes[other], change)?;
    let back = evicts(questions, &classes[other], &classes[one], change)?;
    Ok(if there == back { there } else { Decision::Open })
}

fn evicts(
    questions: &mut Questions<'_>,
    class: &Class,
    other: &Class,
    change: u32,
) -> Result<Decision, Unknown> {
    let plan = questions.plan;
    let victim = |turn| Line {
        page: other.member(turn),
        line: plan.base() ^ change,
    };
    questions.decide(|turn| (class.evictors(plan, None, turn), victim(turn)))
}

/// The pairs of classes that seem to share a set.
fn pairs(questions: &mut Questions<'_>, classes: &[Class]) -> Result<BTreeSet<Pair>, Unknown> {
    let bits = questions.plan.lines_of_page.trailing_zeros();
    let changes: Vec<u32> = std::iter::once(0)
        .chain((0..bits).map(|bit| 1 << bit))
        .collect();
    let (mut pairs, mut done) = (BTreeSet::new(), 0);
    for change in &changes {
        for class in 0..classes.len() {
            questions.progress(RELATING, done, changes.len() * classes.len());
            done += 1;
            pairs.extend(seem_evicted(questions, classes, class, *change)?);
        }
    }
    Ok(pairs)
}

/// `class` with each other one that it seems to evict where the line's number is changed by
/// `change`.
fn seem_evicted(
    questions: &mut Questions<'_>,
    classes: &[Class],
    class: usize,
    change: u32,
) -> Result<Vec<Pair>, Unknown> {
    let plan = questions.plan;
    let others: Vec<usize> = (0..classes.len()).filter(|other| *other != class).collect();
    let mut seen = vec![0; others.len()];
    for turn in 0..SCREENS {
        let evictors = classes[class].evictors(plan, None, turn);
        let victim = |other: &usize| Line {
            page: classes[*other].member(turn),
            line: plan.base() ^ change,
        };
        let victims: Vec<Line> = others.iter().map(victim).collect();
        for (victims, seen) in victims.chunks(VICTIMS).zip(seen.chunks_mut(VICTIMS)) {
            let answers = questions.ask(&evictors, victims)?;
            let answered = answers.iter().zip(seen);
            answered.for_each(|(answer, seen)| *seen += usize::from(*answer != Answer::Kept));
        }
    }
    let pair = |other: usize| Pair {
        one: class.min(other),
        other: class.max(other),
        change,
    };
    let often = others
        .into_iter()
        .zip(seen)
        .filter(|(_, seen)| *seen >= SEEN);
    Ok(often.map(|(other, _)| pair(other)).collect())
}

/// Which of many things are one: a forest, whose trees are what was joined.
struct Joined {
    above: Vec<u32>,
}

impl Joined {
    fn new(count: usize) -> Joined {
        Joined {
            above: (0..count as u32).collect(),
        }
    }

    fn root(&mut self, of: usize) -> usize {
        let mut at = of;
        while self.above[at] as usize != at {
            self.above[at] = self.above[self.above[at] as usize];
            at = self.above[at] as usize;
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.above[one.max(other)] = one.min(other) as u32;
    }

    /// A number for each thing, the same for those that are one, and how many numbers there are.
    fn numbered(mut self) -> (Vec<u32>, u32) {
        let (mut numbers, mut count) = (vec![0; self.above.len()], 0);
        for index in 0..numbers.len() {
            let root = self.root(index);
            if root == index {
                numbers[index] = count;
                count += 1;
            } else {
                numbers[index] = numbers[root];
            }
        }
        (numbers, count)
    }
}
