//! A table as the language has it: each value is read as the kind of its key says.

use std::sync::Arc;

use warmq_config::{Fields, Item, NodeKind};

use super::references::{self, NO_JOINING, OF_TABLE};
use super::scope::{Scope, spot};
use super::values::{amount, place, policy, rate};
use crate::amount::Amount;
use crate::expr::{Expr, Spot};
use crate::keys::{self, Key, Kind};
use crate::object::{Class, Rate};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::step::{Fragment, Pattern, Reference, SpanReference, TaskReference};
use crate::task::Policy;

/// A table that is being read: its keys, and the names in scope.
///
/// A method that answers with nothing for a key that must be there, or whose value is wrong, has
/// reported why.
pub(super) struct Table<'r, 'a, 'n> {
    pub(super) fields: &'r Fields<'a>,
    pub(super) keys: &'r [&'static [Key]],
    pub(super) scope: &'r mut Scope<'n>,
    /// Where it stands, and with it what is not written in it.
    pub(super) spot: Arc<Spot>,
}

/// What the value of a key becomes.
pub(super) trait Read: Sized {
    /// Reads `item`, the value of a key of `kind`.
    fn read(item: &Item<'_>, kind: Kind, scope: &Scope<'_>) -> Option<Self>;
}

impl<'a> Table<'_, 'a, '_> {
    /// The value of key `name`, and its kind.
    fn find(&self, name: &str) -> Option<(Item<'a>, Kind)> {
        let Some(key) = keys::find(self.keys, name) else {
            self.fields.report(format!("no table has `{name}`"), "");
            return None;
        };
        let item = match key.missing {
            Some(help) => self.fields.required(key.name, help),
            None => self.fields.item(key.name),
        };
        Some((item?, key.kind))
    }

    /// The value of key `name` as it is written.
    pub(super) fn item(&self, name: &str) -> Option<Item<'a>> {
        self.find(name).map(|(item, _)| item)
    }

    /// The value of key `name`.
    pub(super) fn get<T: Read>(&self, name: &str) -> Option<T> {
        let (item, kind) = self.find(name)?;
        T::read(&item, kind, self.scope)
    }

    /// The value of key `name`, or `value` where the key is not there.
    pub(super) fn or(&self, name: &str, value: i64) -> Option<Expr> {
        match self.find(name) {
            Some((item, kind)) => Expr::read(&item, kind, self.scope),
            None => {
                let quantity = keys::find(self.keys, name)?.kind.quantities()[0];
                Some(self.scope.constant(&self.spot, value, quantity))
            }
        }
    }

    /// Whether the switch `name` is there and true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).unwrap_or(false)
    }

    /// Finds what is wrong with keys that nobody has asked for, where reading ended before.
    pub(super) fn check_the_rest(&self) {
        let keys = self.keys.iter().copied().flatten();
        for key in keys.filter(|key| !self.fields.is_asked(key.name)) {
            let name = key.name;
            match key.kind {
                Kind::AmountOfTime | Kind::AmountOfWork => drop(self.get::<Amount>(name)),
                Kind::Place => drop(self.get::<Place>(name)),
                Kind::Policy => drop(self.get::<Policy>(name)),
                Kind::Rate => drop(self.get::<Rate>(name)),
                Kind::Object(_) | Kind::Cgroup => drop(self.get::<Reference>(name)),
                Kind::Pattern => drop(self.get::<Pattern>(name)),
                Kind::Text => drop(self.get::<String>(name)),
                Kind::Flag => _ = self.get::<bool>(name),
                Kind::Words(_) => _ = self.get::<&str>(name),
                Kind::Count | Kind::Time | Kind::Size | Kind::Percent | Kind::Switch => {
                    drop(self.get::<Expr>(name));
                }
                // Checked by whoever reads the value together with the keys beside it.
                _ => _ = self.item(name),
            }
        }
    }
}

impl Read for Expr {
    fn read(item: &Item<'_>, kind: Kind, scope: &Scope<'_>) -> Option<Expr> {
        match kind {
            Kind::Percent => percent(item, scope),
            Kind::Switch => switch(item, scope),
            kind => scope.expr(item, kind.quantities()),
        }
    }
}

/// `true` and `false` are 1 and 0, as settings that are switches are.
fn switch(item: &Item<'_>, scope: &Scope<'_>) -> Option<Expr> {
    match item.node.kind {
        NodeKind::Bool(on) => Some(scope.constant(&spot(item), i64::from(on), Quantity::Count)),
        NodeKind::Text(_) => scope.expr(item, Kind::Switch.quantities()),
        _ => item.wrong("true, false, or a setting that is a switch"),
    }
}

impl Read for Amount {
    fn read(item: &Item<'_>, kind: Kind, scope: &Scope<'_>) -> Option<Amount> {
        amount(item, scope, kind.quantities())
    }
}

impl Read for Place {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<Place> {
        place(item, scope)
    }
}

impl Read for Policy {
    fn read(item: &Item<'_>, _: Kind, _: &Scope<'_>) -> Option<Policy> {
        policy(item)
    }
}

impl Read for Rate {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<Rate> {
        rate(item, scope)
    }
}

impl Read for (Reference, Class) {
    fn read(item: &Item<'_>, kind: Kind, scope: &Scope<'_>) -> Option<(Reference, Class)> {
        references::object_and_class(item, scope, kind.classes())
    }
}

impl Read for Reference {
    fn read(item: &Item<'_>, kind: Kind, scope: &Scope<'_>) -> Option<Reference> {
        match kind {
            Kind::Cgroup => references::cgroup(item, scope, NO_JOINING, OF_TABLE),
            kind => references::object(item, scope, kind.classes()),
        }
    }
}

impl Read for TaskReference {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<TaskReference> {
        references::task(item, scope)
    }
}

impl Read for SpanReference {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<SpanReference> {
        references::span(item, scope)
    }
}

/// A fragment's number, or none.
impl Read for Fragment {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<Fragment> {
        match item.is_text("none") {
            true => Some(Fragment::None),
            false => scope
                .expr(item, Kind::Count.quantities())
                .map(Fragment::Number),
        }
    }
}

impl Read for Pattern {
    fn read(item: &Item<'_>, _: Kind, scope: &Scope<'_>) -> Option<Pattern> {
        let text = item.text()?;
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("sequential", "") => Some(Pattern::Sequential),
            ("random", "") => Some(Pattern::Random),
            ("stride", lines) if !lines.is_empty() => {
                let lines = scope.text(item, lines, Kind::Count.quantities())?;
                Some(Pattern::Stride(lines))
            }
            _ => item.wrong("\"sequential\", \"random\", or \"stride 8\" for every eighth line"),
        }
    }
}

impl Read for String {
    fn read(item: &Item<'_>, _: Kind, _: &Scope<'_>) -> Option<String> {
        item.text()
    }
}

impl Read for bool {
    fn read(item: &Item<'_>, _: Kind, _: &Scope<'_>) -> Option<bool> {
        item.flag()
    }
}

/// What is there or not.
impl Read for () {
    fn read(item: &Item<'_>, _: Kind, _: &Scope<'_>) -> Option<()> {
        match item.node.kind {
            NodeKind::Bool(true) => Some(()),
            _ => item.wrong("true"),
        }
    }
}

/// One of the words that are allowed.
impl Read for &'static str {
    fn read(item: &Item<'_>, kind: Kind, _: &Scope<'_>) -> Option<&'static str> {
        let Kind::Words(words) = kind else {
            return None;
        };
        let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
        item.choice(&words)
    }
}

/// `25%`; what is before the sign is an expression.
fn percent(item: &Item<'_>, scope: &Scope<'_>) -> Option<Expr> {
    let wanted = "a part such as \"25%\"";
    let NodeKind::Text(text) = &item.node.kind else {
        return item.wrong(wanted);
    };
    match text.trim().strip_suffix('%') {
        Some(text) => scope.text(item, text, Kind::Count.quantities()),
        None => item.wrong(wanted),
    }
}
