//! What to write in place of a word that is not known.

use std::borrow::Cow;

/// Letters of a word that messages repeat. Names of ours are shorter.
const LONGEST: usize = 80;

/// `word` as messages repeat it: a longer one says no more.
pub(crate) fn shortened(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &word[..end])),
        None => Cow::Borrowed(word),
    }
}

/// The fix for `word`, which is none of `known`: the nearest of them if one is near, else all of
/// them; empty where nothing is known.
///
/// ```
/// use warmq_config::did_you_mean;
/// assert_eq!(did_you_mean("colours", ["colors", "cpus"]), "did you mean `colors`?");
/// assert_eq!(did_you_mean("x", ["colors", "cpus"]), "use one of colors, cpus");
/// ```
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() > MANY => {
            let few = most_like(word, known.iter().copied(), FEW);
            format!("there are {}, such as {}", known.len(), few.join(", "))
        }
        None => format!("use one of {}", known.join(", ")),
    }
}

/// More names than this nobody reads for one that was mistyped.
const MANY: usize = 26;
const FEW: usize = 5;

/// Those of `known` that are most like `word`, at most `most`, the nearest first.
pub fn most_like<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    // Who knows how a name begins may not know how long it is.
    let likeness = |name| (strsim::jaro_winkler(word, name), name);
    let mut known: Vec<_> = known.into_iter().map(likeness).collect();
    known.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    known.into_iter().take(most).map(|(_, name)| name).collect()
}

/// The nearest of `known`, if one is near `word`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The time that a distance takes grows with the product of both lengths.
    if word.len() > LONGEST {
        return None;
    }
    let distance = |name| (strsim::damerau_levenshtein(word, name), name);
    let (distance, name) = known.into_iter().map(distance).min()?;
    (distance <= (word.chars().count() / 3).max(1)).then_some(name)
}
