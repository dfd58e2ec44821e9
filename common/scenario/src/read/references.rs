//! References: `NAME`, `NAME[expr, expr]`, `NAME[expr].near`.

use warmq_config::{Item, did_you_mean};

use super::scope::{Scope, spot};
use crate::expr::Expr;
use crate::object::Class;
use crate::quantity::Quantity::Count;
use crate::step::{End, Reference, SpanId, SpanReference, TaskReference};

/// Why a task that runs cannot be moved into an autogroup.
pub(super) const NO_JOINING: &str =
    "this is an autogroup, and a running process cannot join another session";
/// What to do instead.
pub(super) const OF_TABLE: &str = "name it in the table of the task: group = \"NAME\"";

/// A reference in its parts.
struct Parts<'t> {
    name: &'t str,
    indexes: Vec<&'t str>,
    end: Option<&'t str>,
}

/// The object that `item` names, which must be of one of `classes`.
pub(super) fn object(item: &Item<'_>, scope: &Scope<'_>, classes: &[Class]) -> Option<Reference> {
    object_and_class(item, scope, classes).map(|(reference, _)| reference)
}

/// The object that `item` names, and its class, one of `classes`.
pub(super) fn object_and_class(
    item: &Item<'_>,
    scope: &Scope<'_>,
    classes: &[Class],
) -> Option<(Reference, Class)> {
    let text = item.text()?;
    let parts = parts(item, &text)?;
    let &(object, class, arity) = known_object(item, scope, parts.name, classes)?;
    let indexes = indexes(item, scope, &parts, arity)?;
    let end = end(item, &parts, class)?;
    let reference = Reference {
        object,
        indexes,
        end,
        spot: spot(item),
    };
    Some((reference, class))
}

/// The group that `item` names, which must be a cgroup: `what` says why, and `help` what to do.
pub(super) fn cgroup(
    item: &Item<'_>,
    scope: &Scope<'_>,
    what: &str,
    help: &str,
) -> Option<Reference> {
    let reference = object(item, scope, &[Class::Group])?;
    if scope.names.is_autogroup(reference.object) {
        item.report(what, help);
        return None;
    }
    Some(reference)
}

fn known_object<'n>(
    item: &Item<'_>,
    scope: &Scope<'n>,
    name: &str,
    classes: &[Class],
) -> Option<&'n (crate::object::ObjectId, Class, usize)> {
    let objects = &scope.names.objects;
    let found = objects.get(name);
    if let Some((_, class, _)) = found
        && !classes.contains(class)
    {
        let wanted: Vec<&str> = classes.iter().map(|class| class.name()).collect();
        let what = format!("`{name}` is a {}", class.name());
        item.report(what, format!("name a {}", wanted.join(", a ")));
        return None;
    }
    if found.is_none() {
        let fitting = objects
            .iter()
            .filter(|(_, (_, class, _))| classes.contains(class));
        let known: Vec<&str> = fitting.map(|(name, _)| name.as_str()).collect();
        let help = match known.is_empty() {
            true => format!("declare it: [{}.{name}]", classes[0].name()),
            false => did_you_mean(name, known),
        };
        item.report(format!("there is no {} `{name}`", classes[0].name()), help);
    }
    found
}

/// The task that `item` names.
pub(super) fn task(item: &Item<'_>, scope: &Scope<'_>) -> Option<TaskReference> {
    let text = item.text()?;
    let parts = parts(item, &text)?;
    let Some(&(task, arity)) = scope.names.tasks.get(parts.name) else {
        let known = scope.names.tasks.keys().map(String::as_str);
        item.unknown(
            format!("there is no task `{}`", parts.name),
            parts.name,
            known,
        );
        return None;
    };
    let indexes = indexes(item, scope, &parts, arity)?;
    no_end(item, &parts)?;
    Some(TaskReference {
        task,
        indexes,
        spot: spot(item),
    })
}

/// The latency span that `item` names.
pub(super) fn span(item: &Item<'_>, scope: &Scope<'_>) -> Option<SpanReference> {
    let text = item.text()?;
    let parts = parts(item, &text)?;
    let indexes = indexes(item, scope, &parts, parts.indexes.len())?;
    no_end(item, &parts)?;
    let span = new_span(item, scope, parts.name, indexes.len())?;
    Some(SpanReference { span, indexes })
}

/// The latency span `name`, which has so many indexes, new or known.
pub(super) fn new_span(
    item: &Item<'_>,
    scope: &Scope<'_>,
    name: &str,
    indexes: usize,
) -> Option<SpanId> {
    match scope.names.span(name, indexes) {
        Ok(span) => Some(span),
        Err(known) => {
            let what = format!("the span `{name}` has {} elsewhere", plural(known));
            item.report(what, "give it as many indexes in all places");
            None
        }
    }
}

/// True if `text` names one of many: all of them are meant otherwise.
pub(super) fn has_indexes(text: &str) -> bool {
    text.contains('[')
}

fn parts<'t>(item: &Item<'_>, text: &'t str) -> Option<Parts<'t>> {
    let text = text.trim();
    let split = text.find(['[', '.']).unwrap_or(text.len());
    let (name, rest) = text.split_at(split);
    let (inside, rest) = match rest.strip_prefix('[') {
        Some(opened) => match opened.rsplit_once(']') {
            Some((inside, rest)) => (Some(inside), rest),
            None => (None, rest),
        },
        None => (None, rest),
    };
    let end = rest.trim().strip_prefix('.');
    let whole = super::names::is_name(name.trim()) && (end.is_some() || rest.trim().is_empty());
    if !whole {
        return item.wrong("a name, as NAME, NAME[0], NAME[room, user] or NAME[0].near");
    }
    let indexes = inside
        .map(|inside| inside.split(',').collect())
        .unwrap_or_default();
    let name = name.trim();
    Some(Parts { name, indexes, end })
}

fn indexes(
    item: &Item<'_>,
    scope: &Scope<'_>,
    parts: &Parts<'_>,
    arity: usize,
) -> Option<Vec<Expr>> {
    if parts.indexes.len() != arity {
        let what = format!(
            "`{}` has {}, not {}",
            parts.name,
            plural(arity),
            parts.indexes.len()
        );
        let help = match arity {
            0 => format!("write \"{}\"", parts.name),
            1 => format!("write \"{}[0]\" or another index", parts.name),
            _ => format!(
                "write \"{}[0{}]\" or other indexes",
                parts.name,
                ", 0".repeat(arity.min(8) - 1)
            ),
        };
        item.report(what, help);
        return None;
    }
    let index = |text: &&str| scope.text(item, text, &[Count]);
    parts.indexes.iter().map(index).collect()
}

fn plural(indexes: usize) -> String {
    match indexes {
        0 => "no index".to_owned(),
        1 => "one index".to_owned(),
        many => format!("{many} indexes"),
    }
}

fn end(item: &Item<'_>, parts: &Parts<'_>, class: Class) -> Option<Option<End>> {
    match (class, parts.end) {
        (Class::Stream, Some("near")) => Some(Some(End::Near)),
        (Class::Stream, Some("far")) => Some(Some(End::Far)),
        (Class::Stream, _) => {
            let what = format!("the stream `{}` has two ends", parts.name);
            item.report(what, "write .near or .far after it");
            None
        }
        _ => no_end(item, parts).map(|()| None),
    }
}

fn no_end(item: &Item<'_>, parts: &Parts<'_>) -> Option<()> {
    let Some(end) = parts.end else {
        return Some(());
    };
    let what = format!("`{}` has no end `.{end}`", parts.name);
    item.report(what, "only streams have ends, .near and .far");
    None
}
