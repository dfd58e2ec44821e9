//! Words that say nothing are used neither as names nor in comments.

use std::path::Path;

use crate::tree::{Source, sources};

/// What a name must not be: say what the thing is.
const NO_NAME: &str = "it";
/// What a comment must not say: say whether something is recorded, printed, known...
const NOT_SAID: &str = "told";

#[test]
fn names_and_comments_say_what_is_meant() {
    let sources = sources();
    let wrong: Vec<String> = sources.iter().flat_map(faults).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn faults(source: &Source) -> Vec<String> {
    let (code, comments) = code_and_comments(&source.text);
    let names = lines_with(&code, NO_NAME).map(|line| (line, "a name that says nothing", NO_NAME));
    let said = lines_with(&comments, NOT_SAID).map(|line| (line, "a comment with", NOT_SAID));
    let shown = |(line, what, word)| format!("{}:{line}: {what}: {word}", source.path.display());
    names.chain(said).map(shown).collect()
}

/// The numbers of the lines that have `word`, a whole word.
fn lines_with(text: &str, word: &'static str) -> impl Iterator<Item = usize> {
    let is_outside = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let has = move |line: &str| {
        line.split(is_outside)
            .any(|other| other.eq_ignore_ascii_case(word))
    };
    let numbered = (1..).zip(text.lines());
    numbered.filter_map(move |(number, line)| has(line).then_some(number))
}

/// The code of `text` without its literals, and its comments; each on the lines where it is.
fn code_and_comments(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_a_word = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let (length, kept) = match literal(rest, in_a_word) {
            Some(length) => (length, None),
            None if rest.starts_with("//") => (to(rest, "\n"), Some(&mut comments)),
            None if rest.starts_with("/*") => (past(rest, "*/"), Some(&mut comments)),
            None => (first.len_utf8(), Some(&mut code)),
        };
        let (piece, after) = rest.split_at(length);
        if let Some(kept) = kept {
            kept.push_str(piece.trim_matches('\n'));
        }
        for _ in piece.matches('\n') {
            code.push('\n');
            comments.push('\n');
        }
        rest = after;
    }
    (code, comments)
}

/// The length of the literal with which `text` begins: a string, a raw one or a character. Letters
/// before a quote are of a name if they are `in_a_word`.
fn literal(text: &str, in_a_word: bool) -> Option<usize> {
    let prefix = |letters: &str| (!in_a_word).then(|| text.strip_prefix(letters)).flatten();
    let raw = ["r", "br", "cr"].iter().find_map(|letters| prefix(letters));
    if let Some(raw) = raw {
        let quoted = raw.trim_start_matches('#');
        let end = format!("\"{}", &raw[..raw.len() - quoted.len()]);
        let inside = quoted.strip_prefix('"')?;
        return Some(text.len() - inside.len() + past(inside, &end));
    }
    match text.strip_prefix('"') {
        Some(inside) => Some(1 + unescaped(inside, '"')),
        None => character(text.strip_prefix('\'')?),
    }
}

/// The length of a character whose quote is before `inside`; none if that begins a lifetime.
fn character(inside: &str) -> Option<usize> {
    let mut letters = inside.chars();
    let (first, second) = (letters.next()?, letters.next()?);
    (first == '\\' || second == '\'').then(|| 1 + unescaped(inside, '\''))
}

/// How far it is past the first `quote` without a backslash before it.
fn unescaped(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = inside.char_indices().find(|(_, letter)| {
        let ends = !escaped && *letter == quote;
        escaped = !escaped && *letter == '\\';
        ends
    });
    end.map_or(inside.len(), |(at, _)| at + 1)
}

fn to(text: &str, end: &str) -> usize {
    text.find(end).unwrap_or(text.len())
}

fn past(text: &str, end: &str) -> usize {
    (to(text, end) + end.len()).min(text.len())
}

#[test]
fn faults_are_found_in_code_and_comments_and_not_in_literals() {
    let text = r####"// Told.
let a = b.map(|it| it.name);
let c = "it // told"; let d = r#"it "told" it"#;
let e = '"'; let it = '\'';
fn told<'it_is>(x: &'it_is str) {} /* two
are told */ let f = b"\"it"; // it
for (at, it) in g { } // retold, untold
"####;
    let source = Source {
        path: Path::new("lab/a.rs").into(),
        text: text.to_owned(),
    };
    let name = |line| format!("lab/a.rs:{line}: a name that says nothing: it");
    let said = |line| format!("lab/a.rs:{line}: a comment with: told");
    let expected = [name(2), name(4), name(7), said(1), said(6)];
    assert_eq!(faults(&source), expected);
}
