//! The names that an expression may use at its place, and its reading.

use std::sync::Arc;

use warmq_config::{Item, NodeKind, did_you_mean};

use super::names::Names;
use super::settings::is_identifier;
use crate::expr::{Curve, Expr, Known, Lookup, Refusal, Spot, Tree, parse};
use crate::quantity::{Quantity, alternatives};
use crate::site::Resource;

/// The numbers of the machine, settings, and the indexes of a table and of the repetitions around a
/// step.
pub(super) struct Scope<'n> {
    pub(super) names: &'n Names,
    /// By slot; none for an index without a name.
    indexes: Vec<Option<String>>,
}

impl Lookup for Scope<'_> {
    fn find(&self, name: &str) -> Option<Known> {
        let index = self
            .indexes
            .iter()
            .position(|known| known.as_deref() == Some(name));
        index
            .map(Known::Index)
            .or_else(|| self.names.settings.get(name).copied())
            .or_else(|| Resource::of_number(name).map(Known::Machine))
    }

    fn curve(&self, name: &str) -> Result<Arc<Curve>, Refusal> {
        let curves = &self.names.curves;
        curves.get(name).cloned().ok_or_else(|| {
            let help = match curves.is_empty() {
                true => {
                    format!("write [curve.{name}] with its points, or leave the parenthesis out")
                }
                false => did_you_mean(name, curves.keys().map(String::as_str)),
            };
            Refusal::new(format!("there is no curve `{name}`"), help)
        })
    }

    fn suggestion(&self, name: &str) -> String {
        let indexes = self.indexes.iter().flatten();
        let known: Vec<&str> = indexes
            .chain(self.names.settings.keys())
            .map(String::as_str)
            .chain(Resource::ALL.iter().map(|(.., number)| *number))
            .collect();
        did_you_mean(name, known)
    }
}

impl<'n> Scope<'n> {
    pub(super) fn new(names: &'n Names) -> Scope<'n> {
        let indexes = Vec::new();
        Scope { names, indexes }
    }

    /// Opens a slot for an index; what is wrong with its name is reported at `item`.
    pub(super) fn push(&mut self, name: Option<String>, item: &Item<'_>) {
        if let Some(name) = &name {
            if !is_identifier(name) {
                let help = "write letters, digits and _, beginning with a letter";
                item.report(format!("`{name}` cannot be the name of an index"), help);
            } else if Resource::of_number(name).is_some() {
                item.report(of_machine(name), "give the index another name");
            } else if self.find(name).is_some() {
                let what = format!("`{name}` is the name of a setting or of another index already");
                item.report(what, "give each index a name of its own");
            }
        }
        self.indexes.push(name);
    }

    /// Closes the last slot.
    pub(super) fn pop(&mut self) {
        self.indexes.pop();
    }

    /// An expression that is one of `wanted`.
    pub(super) fn expr(&self, item: &Item<'_>, wanted: &[Quantity]) -> Option<Expr> {
        match &item.node.kind {
            NodeKind::Integer(value) => {
                self.made(item, (Tree::Literal(*value), Quantity::Count), wanted)
            }
            NodeKind::Text(text) => self.text(item, text, wanted),
            _ => item.wrong(&format!("{}, or an expression in quotes", examples(wanted))),
        }
    }

    /// An expression that is the text, or a part of the text, of `item`.
    pub(super) fn text(&self, item: &Item<'_>, text: &str, wanted: &[Quantity]) -> Option<Expr> {
        match parse(text, self) {
            Ok(read) => self.made(item, read, wanted),
            Err(Refusal { what, help }) => {
                item.report(what, help);
                None
            }
        }
    }

    fn made(
        &self,
        item: &Item<'_>,
        (tree, quantity): (Tree, Quantity),
        wanted: &[Quantity],
    ) -> Option<Expr> {
        if !wanted.contains(&quantity) {
            let wants = alternatives(wanted, Quantity::name);
            let what = format!("this is {}, and {wants} is wanted", quantity.name());
            item.report(what, format!("write it as in {}", examples(wanted)));
            return None;
        }
        Some(Expr {
            tree,
            quantity,
            spot: spot(item),
        })
    }

    /// A literal that the file does not write, at the place of `item`.
    pub(super) fn constant(&self, spot: &Arc<Spot>, value: i64, quantity: Quantity) -> Expr {
        Expr {
            tree: Tree::Literal(value),
            quantity,
            spot: spot.clone(),
        }
    }
}

/// What is wrong with a setting or an index called `name`.
pub(super) fn of_machine(name: &str) -> String {
    format!("`{name}` is a number of the machine that plays the scenario")
}

fn examples(wanted: &[Quantity]) -> String {
    alternatives(wanted, Quantity::example)
}

/// Where `item` stands.
pub(super) fn spot(item: &Item<'_>) -> Arc<Spot> {
    Arc::new(Spot {
        key: item.key.clone(),
        place: item.node.place.clone(),
    })
}
