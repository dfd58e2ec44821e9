//! Which class shares its sets with which other one, at the same line or at another.

use std::collections::BTreeMap;

use super::classes::Class;
use super::{Answer, GoOn, Line, Oracle, Plan, Sets, Unknown, step};

/// The part of the search, in thousandths.
const RELATING: (u32, u32) = (900, 1000);

/// Joins the lines of all classes into sets: line `l` of a page of class A and line `l ^ change` of
/// one of class B are in the same set if each evicts the other at one `l`, as an index that is an
/// exclusive or of address bits does not care at which. It is asked for each change of one bit.
pub fn sets(
    oracle: &mut dyn Oracle,
    plan: &Plan,
    classes: &[Class],
    go_on: GoOn<'_>,
) -> Result<Sets, Unknown> {
    let classes = merged(oracle, plan, classes);
    let lines = plan.lines_of_page as usize;
    let mut joined = Joined::new(classes.len() * lines);
    let bits = plan.lines_of_page.trailing_zeros();
    for bit in 0..bits {
        step(go_on, RELATING, bit as usize, bits as usize)?;
        for (class, others) in mutual(oracle, plan, &classes, 1 << bit) {
            // A class has at most one partner; where more seem to be, none is believed.
            let [other] = others[..] else { continue };
            for line in 0..lines {
                joined.join(class * lines + line, other * lines + (line ^ 1 << bit));
            }
        }
    }
    let (joined_to, count) = joined.numbered();
    let (kept, set_of) = connected(&joined_to, count, lines);
    let sets = set_of.iter().max().map_or(0, |last| last + 1);
    if sets > plan.sets || !set_of.chunks(lines).all(all_differ) {
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
        lines_of_page: plan.lines_of_page,
    })
}

/// The classes whose relations are known, and the sets of their lines, numbered anew.
///
/// With `k` hashed bits within a page, `2^k` classes share their sets. Fewer are joined where
/// answers were lost; as long as they are more than half, no others can be a part of the same sets
/// that nobody noticed. Where they are not, their pages are given up.
fn connected(joined_to: &[u32], count: u32, lines: usize) -> (Vec<usize>, Vec<u32>) {
    let mut size = vec![0_usize; count as usize];
    joined_to.iter().for_each(|set| size[*set as usize] += 1);
    let whole = size.iter().copied().max().unwrap_or(0).next_power_of_two();
    let of = |class: usize| &joined_to[class * lines..(class + 1) * lines];
    let classes = 0..joined_to.len() / lines;
    let kept: Vec<usize> = classes
        .filter(|class| size[of(*class)[0] as usize] * 2 > whole)
        .collect();
    let mut numbers = BTreeMap::new();
    let mut number = |set: &u32| {
        let next = numbers.len() as u32;
        *numbers.entry(*set).or_insert(next)
    };
    let set_of = kept
        .iter()
        .flat_map(|class| of(*class))
        .map(&mut number)
        .collect();
    (kept, set_of)
}

fn all_differ(sets: &[u32]) -> bool {
    let mut sets = sets.to_vec();
    sets.sort_unstable();
    sets.windows(2).all(|pair| pair[0] != pair[1])
}

/// Classes that evict each other at the same line are one: their signatures were taken for different
/// ones because of noise, or because the cache replaces at random.
fn merged(oracle: &mut dyn Oracle, plan: &Plan, classes: &[Class]) -> Vec<Class> {
    let mut joined = Joined::new(classes.len());
    for (class, others) in mutual(oracle, plan, classes, 0) {
        others.iter().for_each(|other| joined.join(class, *other));
    }
    let (numbers, count) = joined.numbered();
    let mut merged = vec![Class::default(); count as usize];
    for (class, number) in classes.iter().zip(numbers) {
        merged[number as usize].members.extend(&class.members);
    }
    merged
}

/// Each class with those others which it evicts, and which evict it, where the number of the line
/// is changed by `change`.
fn mutual(
    oracle: &mut dyn Oracle,
    plan: &Plan,
    classes: &[Class],
    change: u32,
) -> Vec<(usize, Vec<usize>)> {
    let evicted: Vec<Vec<usize>> = (0..classes.len())
        .map(|class| evicted_by(oracle, plan, classes, class, change))
        .collect();
    let both = |(class, others): (usize, &Vec<usize>)| {
        let back = others.iter().copied();
        (
            class,
            back.filter(|other| evicted[*other].contains(&class))
                .collect(),
        )
    };
    evicted.iter().enumerate().map(both).collect()
}

/// The other classes that `class` evicts where the number of the line is changed by `change`.
fn evicted_by(
    oracle: &mut dyn Oracle,
    plan: &Plan,
    classes: &[Class],
    class: usize,
    change: u32,
) -> Vec<usize> {
    let evictors = plan.lines(&classes[class].evictors(plan, u32::MAX, 0));
    let others: Vec<usize> = (0..classes.len()).filter(|other| *other != class).collect();
    let victim = |other: usize| Line {
        page: classes[other].members[0],
        line: plan.base() ^ change,
    };
    let victims: Vec<Line> = others.iter().map(|other| victim(*other)).collect();
    let answers = oracle.ask(&evictors, &victims);
    let seem = others
        .into_iter()
        .zip(answers)
        .filter(|(_, it)| *it != Answer::Kept);
    // With many victims, some seem evicted by chance: those few are asked again, one by one.
    let again = |other: &usize| oracle.ask(&evictors, &[victim(*other)])[..] == [Answer::Evicted];
    seem.map(|(other, _)| other).filter(again).collect()
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
