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
        None => format!("use one of {}", known.join(", ")),
    }
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
