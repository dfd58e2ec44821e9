//! JSON as people write it for rt-app: with comments, with commas after the last member, with keys
//! without a value, and with a key several times in one object. Order and places are kept.

use std::ops::Range;

use warmq_config::{Entry, Node, NodeKind, Place, Problems, Source};

/// How deep objects and lists may lie within one another.
const DEEPEST: usize = 64;

/// The value that `text` is; messages call it `name`.
pub(super) fn parse(name: &str, text: &str) -> Result<Node, Problems> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let parsed = parser.whole();
    parsed.map_err(|Refused { span, what, help }| {
        let what = format!("this is not JSON: {what}");
        Problems::from(Source::file(name, text).problem("", span, what, help))
    })
}

/// Why a text is no JSON, and where.
struct Refused {
    span: Range<usize>,
    what: &'static str,
    help: &'static str,
}

type Read<T> = Result<T, Refused>;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Read<Node> {
        let node = self.value()?;
        self.skip()?;
        match self.peek() {
            None => Ok(node),
            Some(_) => self.refuse("there is more after its end", "delete it"),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Takes `letter` if it comes next, behind blanks and comments.
    fn takes(&mut self, letter: char) -> Read<bool> {
        self.skip()?;
        let next = self.peek() == Some(letter);
        if next {
            self.at += letter.len_utf8();
        }
        Ok(next)
    }

    fn refuse<T>(&self, what: &'static str, help: &'static str) -> Read<T> {
        self.refuse_from(self.at, what, help)
    }

    /// Refuses what stands at `start`, to the end of its line.
    fn refuse_from<T>(&self, start: usize, what: &'static str, help: &'static str) -> Read<T> {
        let rest = &self.text[start..];
        let end = start + rest.find('\n').unwrap_or(rest.len());
        let span = start..end;
        Err(Refused { span, what, help })
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Read<()> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').or(Some(trimmed.len()))
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2)
            } else {
                return Ok(());
            };
            match comment {
                Some(length) => self.at += length,
                None => return self.refuse("a comment has no end", "write */ after it"),
            }
        }
    }

    fn value(&mut self) -> Read<Node> {
        self.skip()?;
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.object()?,
            Some('[') => self.list()?,
            Some('"' | '\'') => NodeKind::Text(self.string()?),
            Some('-' | '+' | '0'..='9') => self.number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.word()?,
            _ => return self.refuse("a value is missing", "write a value"),
        };
        Ok(self.node(start, kind))
    }

    fn node(&self, start: usize, kind: NodeKind) -> Node {
        let place = Place::in_file(start..self.at);
        Node { place, kind }
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => self.refuse("it is nested too deep", "nest at most 64 deep"),
            false => Ok(()),
        }
    }

    fn object(&mut self) -> Read<NodeKind> {
        self.deeper()?;
        self.takes('{')?;
        let mut entries = Vec::new();
        while !self.takes('}')? {
            let start = self.at;
            let Some('"' | '\'') = self.peek() else {
                return self.refuse("a key is missing", "write \"KEY\" : VALUE, or close with }");
            };
            let key = self.string()?;
            let place = Place::in_file(start..self.at);
            let node = match self.takes(':')? {
                true => self.value()?,
                false => self.node(start, NodeKind::Other("nothing")),
            };
            entries.push(Entry { key, place, node });
            self.skip()?;
            if !self.takes(',')? && self.peek() != Some('}') {
                return self.refuse("a comma is missing", "write , or } here");
            }
        }
        self.depth -= 1;
        Ok(NodeKind::Table(entries))
    }

    fn list(&mut self) -> Read<NodeKind> {
        self.deeper()?;
        self.takes('[')?;
        let mut nodes = Vec::new();
        while !self.takes(']')? {
            nodes.push(self.value()?);
            self.skip()?;
            if !self.takes(',')? && self.peek() != Some(']') {
                return self.refuse("a comma is missing", "write , or ] here");
            }
        }
        self.depth -= 1;
        Ok(NodeKind::List(nodes))
    }

    /// The letters that come next and that `belongs` accepts.
    fn letters(&mut self, belongs: fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let length = rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn word(&mut self) -> Read<NodeKind> {
        let start = self.at;
        match self.letters(|letter| letter.is_ascii_alphabetic()) {
            "true" => Ok(NodeKind::Bool(true)),
            "false" => Ok(NodeKind::Bool(false)),
            "null" => Ok(NodeKind::Other("nothing")),
            _ => self.refuse_from(start, "a word is not in quotes", "write \"WORD\""),
        }
    }

    fn number(&mut self) -> Read<NodeKind> {
        let start = self.at;
        let digits =
            self.letters(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        let whole = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = digits.parse().map(NodeKind::Integer);
            return Ok(number.unwrap_or(NodeKind::Other("a number beyond 64 bits")));
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(NodeKind::Decimal(digits.to_owned())),
            _ => self.refuse_from(start, "this is no number", "write digits alone"),
        }
    }

    /// What is in quotes; the opening one comes next.
    fn string(&mut self) -> Read<String> {
        let start = self.at;
        let quote = self.peek().unwrap_or('"');
        self.at += quote.len_utf8();
        let mut string = String::new();
        while let Some(letter) = self.peek() {
            self.at += letter.len_utf8();
            match letter {
                _ if letter == quote => return Ok(string),
                '\\' => string.push(self.escaped()?),
                '\n' => break,
                _ => string.push(letter),
            }
        }
        self.refuse_from(start, "a text has no end", "write a quote after it")
    }

    /// What is behind a backslash.
    fn escaped(&mut self) -> Read<char> {
        let start = self.at;
        let letter = self.peek().unwrap_or(' ');
        self.at += letter.len_utf8().min(self.text.len() - self.at);
        match letter {
            'n' => Ok('\n'),
            't' => Ok('\t'),
            'r' => Ok('\r'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            '"' | '\\' | '/' | '\'' => Ok(letter),
            'u' => self.unicode(start),
            _ => self.refuse_from(
                start,
                "this cannot be escaped",
                "write \\\\ for a backslash",
            ),
        }
    }

    /// Four hexadecimal digits, or two times four that are a surrogate pair.
    fn unicode(&mut self, start: usize) -> Read<char> {
        let first = self.four_digits();
        let letter = match first {
            Some(high @ 0xd800..0xdc00) => {
                let escaped = self.text[self.at..].starts_with("\\u");
                self.at += if escaped { 2 } else { 0 };
                let low = self
                    .four_digits()
                    .filter(|unit| (0xdc00..0xe000).contains(unit));
                low.and_then(|low| char::from_u32(0x10000 + ((high - 0xd800) << 10) + low - 0xdc00))
            }
            other => other.and_then(char::from_u32),
        };
        match letter {
            Some(letter) => Ok(letter),
            None => self.refuse_from(start, "this is no character", "write the character itself"),
        }
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parsed text in one line: duplicates stay where they were written.
    fn shown(node: &Node) -> String {
        match &node.kind {
            NodeKind::Table(entries) => {
                let inner = entries.iter();
                let inner: Vec<String> = inner
                    .map(|entry| format!("{} {}", entry.key, shown(&entry.node)))
                    .collect();
                format!("{{{}}}", inner.join(", "))
            }
            NodeKind::List(nodes) => {
                let inner: Vec<String> = nodes.iter().map(shown).collect();
                format!("[{}]", inner.join(", "))
            }
            _ => node.describe(),
        }
    }

    fn read(text: &str) -> String {
        match parse("s.json", text) {
            Ok(node) => shown(&node),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn what_people_write_is_read() {
        let table = [
            ("{}", "{}"),
            (
                "{ \"run\" : 1, \"sleep\": 2, \"run\" : 3, }",
                "{run 1, sleep 2, run 3}",
            ),
            ("/* one */ [1, // two\n -2,]", "[1, -2]"),
            ("{ \"suspend\", \"run\" : 5 }", "{suspend nothing, run 5}"),
            (
                "[true, false, null, 1.5e3]",
                "[true, false, nothing, 1.5e3]",
            ),
            (
                r#"["a\"\u00e4\ud83d\ude00\n", 'it']"#,
                "[\"a\\\"ä😀\\n\", \"it\"]",
            ),
            ("99999999999999999999", "a number beyond 64 bits"),
        ];
        for (text, wanted) in table {
            assert_eq!(read(text), wanted);
        }
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_place() {
        let table = [
            (
                "",
                "s.json:1: this is not JSON: a value is missing; write a value",
            ),
            (
                "{\n\"a\" 1 }",
                "s.json:2: this is not JSON: a comma is missing; write , or } here",
            ),
            (
                "[1 2]",
                "s.json:1: this is not JSON: a comma is missing; write , or ] here",
            ),
            (
                "{ a : 1 }",
                "s.json:1: this is not JSON: a key is missing; write \"KEY\" : VALUE, or close with }",
            ),
            (
                "[\"a",
                "s.json:1: this is not JSON: a text has no end; write a quote after it",
            ),
            (
                "/* a",
                "s.json:1: this is not JSON: a comment has no end; write */ after it",
            ),
            (
                "1-2",
                "s.json:1: this is not JSON: this is no number; write digits alone",
            ),
            (
                "1 2",
                "s.json:1: this is not JSON: there is more after its end; delete it",
            ),
            (
                "[yes]",
                "s.json:1: this is not JSON: a word is not in quotes; write \"WORD\"",
            ),
            (
                r#""\q""#,
                "s.json:1: this is not JSON: this cannot be escaped; write \\\\ for a backslash",
            ),
            (
                r#""\ud800""#,
                "s.json:1: this is not JSON: this is no character; write the character itself",
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(read(text), wanted, "{text}");
        }
        let deep = "[".repeat(100);
        assert!(read(&deep).contains("nested too deep"));
    }
}
