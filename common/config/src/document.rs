//! A TOML text as an owned tree: every value knows its place, tables are in the order of the text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use crate::fields::Fields;
use crate::problem::{Problem, Problems, Sink, Source};
use crate::suggestion::shortened;

/// A TOML document, perhaps with values that options of a command line have set.
#[derive(Clone, Debug)]
pub struct Document {
    // Invariant: every place in `root` is of one of the sources and lies within its text; the file
    // comes first.
    sources: Vec<Source>,
    root: Node,
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which source of the document.
    pub(crate) source: usize,
    /// Which bytes of its text.
    pub(crate) span: Range<usize>,
}

impl Place {
    /// The bytes `span` of a document's file.
    pub fn in_file(span: Range<usize>) -> Place {
        Place { source: 0, span }
    }
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub kind: NodeKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A finite decimal number, as it is written: whoever needs it exactly reads the digits.
    Decimal(String),
    /// A text in quotes; for an option also one without.
    Text(String),
    /// `[...]`, or several tables `[[...]]`.
    List(Vec<Node>),
    /// A table, in the order of the text.
    Table(Vec<Entry>),
    /// What no document of ours has: a date, a number beyond 64 bits.
    Other(&'static str),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Document {
    /// Reads `text` as TOML; messages call the file `name`.
    ///
    /// # Errors
    /// A text that is not TOML.
    pub fn parse(name: &str, text: &str) -> Result<Document, Problems> {
        let source = Source::file(name, text);
        let table = DeTable::parse(text).map_err(|error| {
            let what = format!("this is not TOML: {}", error.message());
            source.problem("", error.span().unwrap_or(0..0), what, "")
        })?;
        let root = Node {
            place: Place {
                source: 0,
                span: 0..0,
            },
            kind: NodeKind::Table(entries(table.into_inner(), &Origin::FILE)),
        };
        let sources = vec![source];
        Ok(Document { sources, root })
    }

    /// The document `root`, which another reader than that of TOML made of `text`; messages call
    /// the file `name`. Every place in `root` is one of [`Place::in_file`], within `text` and on
    /// borders of characters.
    pub fn of_tree(name: &str, text: &str, root: Node) -> Document {
        let sources = vec![Source::file(name, text)];
        Document { sources, root }
    }

    /// The document `root`, which stands in no text; messages call it `name`. Every place in `root`
    /// is `Place::in_file(0..0)`.
    pub fn without_text(name: &str, root: Node) -> Document {
        let sources = vec![Source::option(name, "")];
        Document { sources, root }
    }

    /// Puts a value that was typed as `option` at `path`, in place of what is there. `value`, the
    /// end of the option's text, is read as in a file where it is a number, a switch or a list,
    /// else as a text: no quotes are needed in a shell.
    pub fn set(&mut self, path: &[&str], value: &str, option: Source) {
        let origin = Origin {
            source: self.sources.len(),
            offset: option.text.len() - value.len(),
        };
        self.put(path, option, typed(value, &origin));
    }

    /// Puts a list of texts at `path`, in place of what is there. They were typed after the option
    /// `name`, separated by commas.
    pub fn set_list(&mut self, path: &[&str], name: &str, texts: &[String]) {
        let mut origin = Origin {
            source: self.sources.len(),
            offset: 0,
        };
        let text = |text: &String| {
            let place = origin.place(0..text.len());
            origin.offset += text.len() + 1;
            Node {
                place,
                kind: NodeKind::Text(text.clone()),
            }
        };
        let items = texts.iter().map(text).collect();
        let option = Source::option(name, &texts.join(","));
        let list = Node {
            place: Place {
                source: self.sources.len(),
                span: 0..option.text.len(),
            },
            kind: NodeKind::List(items),
        };
        self.put(path, option, list);
    }

    /// Puts `node`, all of whose places are in `option`, at `path`.
    fn put(&mut self, path: &[&str], option: Source, node: Node) {
        let whole = Place {
            source: self.sources.len(),
            span: 0..option.text.len(),
        };
        self.sources.push(option);
        *self.root.at(path, &whole) = node;
    }

    /// Takes over the tables, single ones and lists of them, that `base` has at its root and this
    /// document has not. Messages about them name its text.
    pub fn take_tables(&mut self, base: Document) {
        let (NodeKind::Table(own), NodeKind::Table(theirs)) = (&mut self.root.kind, base.root.kind)
        else {
            return;
        };
        let by = self.sources.len();
        for mut entry in theirs {
            let is_table = matches!(entry.node.kind, NodeKind::Table(_) | NodeKind::List(_));
            if is_table && own.iter().all(|known| known.key != entry.key) {
                entry.place.source += by;
                entry.node.shift(by);
                own.push(entry);
            }
        }
        self.sources.extend(base.sources);
    }

    /// The text at `key` of the root, if there is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        let NodeKind::Table(entries) = &self.root.kind else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        match &entry.node.kind {
            NodeKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.sources[0].name
    }

    /// A problem at `place`, for what shows only after the document was read.
    pub fn problem(
        &self,
        key: &str,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Problem {
        self.sources[place.source].problem(key, place.span.clone(), what, help)
    }

    /// Reads the document: `read` gets its root table, and answers with nothing only after it has
    /// reported why.
    ///
    /// # Errors
    /// Everything that was reported.
    ///
    /// # Panics
    /// When `read` answers with nothing and has reported nothing.
    pub fn read<T>(&self, read: impl FnOnce(&Fields<'_>) -> Option<T>) -> Result<T, Problems> {
        let sink = Sink::new(&self.sources);
        let result = match &self.root.kind {
            NodeKind::Table(entries) => read(&Fields::new("", &self.root.place, entries, &sink)),
            _ => None,
        };
        sink.verdict()?;
        Ok(result.expect("what cannot be read was reported"))
    }

    /// Whether the document has `key` at its root.
    pub fn has(&self, key: &str) -> bool {
        match &self.root.kind {
            NodeKind::Table(entries) => entries.iter().any(|entry| entry.key == key),
            _ => false,
        }
    }

    /// True if `text` occurs as a value anywhere in the document.
    pub fn mentions(&self, text: &str) -> bool {
        self.root.mentions(text)
    }
}

impl Node {
    /// What a person calls such a value.
    pub fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Bool(flag) => flag.to_string(),
            NodeKind::Integer(count) => count.to_string(),
            NodeKind::Decimal(digits) => shortened(digits).into_owned(),
            NodeKind::Text(text) => format!("\"{}\"", shortened(text).escape_debug()),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Table(_) => "a table".to_owned(),
            NodeKind::Other(what) => (*what).to_owned(),
        }
    }

    /// Its places are of the source that comes `by` later.
    fn shift(&mut self, by: usize) {
        self.place.source += by;
        match &mut self.kind {
            NodeKind::List(nodes) => nodes.iter_mut().for_each(|node| node.shift(by)),
            NodeKind::Table(entries) => {
                for entry in entries {
                    entry.place.source += by;
                    entry.node.shift(by);
                }
            }
            _ => {}
        }
    }

    fn mentions(&self, wanted: &str) -> bool {
        match &self.kind {
            NodeKind::Text(text) => text == wanted,
            NodeKind::List(nodes) => nodes.iter().any(|node| node.mentions(wanted)),
            NodeKind::Table(entries) => entries.iter().any(|entry| entry.node.mentions(wanted)),
            _ => false,
        }
    }

    /// The node at `path`; what is missing is made, at `place`.
    fn at(&mut self, path: &[&str], place: &Place) -> &mut Node {
        let Some((key, rest)) = path.split_first() else {
            return self;
        };
        if !matches!(self.kind, NodeKind::Table(_)) {
            *self = Node::empty(place);
        }
        let NodeKind::Table(entries) = &mut self.kind else {
            unreachable!("it is a table now");
        };
        let found = entries.iter().position(|entry| entry.key == *key);
        let index = found.unwrap_or_else(|| {
            entries.push(Entry {
                key: (*key).to_owned(),
                place: place.clone(),
                node: Node::empty(place),
            });
            entries.len() - 1
        });
        entries[index].node.at(rest, place)
    }

    fn empty(place: &Place) -> Node {
        Node {
            place: place.clone(),
            kind: NodeKind::Table(Vec::new()),
        }
    }
}

/// Which source the parser's spans belong to, and where in it they begin.
struct Origin {
    source: usize,
    offset: usize,
}

impl Origin {
    const FILE: Origin = Origin {
        source: 0,
        offset: 0,
    };

    fn place(&self, span: Range<usize>) -> Place {
        Place {
            source: self.source,
            span: span.start + self.offset..span.end + self.offset,
        }
    }
}

/// A value that was typed: as in a file where it is a number, a switch or a list, else a text.
fn typed(value: &str, origin: &Origin) -> Node {
    let text = |_| Node {
        place: origin.place(0..value.len()),
        kind: NodeKind::Text(value.to_owned()),
    };
    DeValue::parse(value).map_or_else(text, |parsed| node(parsed, origin))
}

/// The same within a text that stands at `place`, which is all that is known of where it is.
pub(crate) fn typed_at(value: &str, place: &Place) -> Node {
    let origin = Origin {
        source: place.source,
        offset: 0,
    };
    Node {
        place: place.clone(),
        ..typed(value, &origin)
    }
}

fn entries(table: DeTable<'_>, origin: &Origin) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            place: origin.place(key.span()),
            key: key.into_inner().into_owned(),
            node: node(value, origin),
        })
        .collect();
    entries.sort_by_key(|entry| entry.place.span.start);
    entries
}

fn node(value: Spanned<DeValue<'_>>, origin: &Origin) -> Node {
    let place = origin.place(value.span());
    let kind = match value.into_inner() {
        DeValue::Boolean(flag) => NodeKind::Bool(flag),
        DeValue::Integer(digits) => integer(&digits),
        DeValue::Float(digits) => decimal(&digits),
        DeValue::String(text) => NodeKind::Text(text.into_owned()),
        DeValue::Array(items) => {
            NodeKind::List(items.into_iter().map(|item| node(item, origin)).collect())
        }
        DeValue::Table(table) => NodeKind::Table(entries(table, origin)),
        DeValue::Datetime(_) => NodeKind::Other("a date"),
    };
    Node { place, kind }
}

fn integer(digits: &DeInteger<'_>) -> NodeKind {
    match i64::from_str_radix(digits.as_str(), digits.radix()) {
        Ok(count) => NodeKind::Integer(count),
        Err(_) => NodeKind::Other("a number beyond 64 bits"),
    }
}

/// Infinities and NaN are no quantities.
fn decimal(digits: &DeFloat<'_>) -> NodeKind {
    match digits.as_str().parse::<f64>() {
        Ok(number) if number.is_finite() => NodeKind::Decimal(digits.as_str().to_owned()),
        _ => NodeKind::Other("a number that is not finite"),
    }
}
