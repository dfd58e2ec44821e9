//! The steps of a body.

use warmq_config::{Fields, Item, did_you_mean};

use super::scope::{Scope, spot};
use super::table::Table;
use super::verbs;
use crate::expr::SettingId;
use crate::keys;
use crate::step::{Action, Step, When};

/// The steps in a list.
pub(super) fn list(item: Option<Item<'_>>, scope: &mut Scope<'_>) -> Vec<Step> {
    let Some(list) = item else {
        return Vec::new();
    };
    let Some(mut items) = list.list() else {
        return Vec::new();
    };
    for (index, item) in items.iter_mut().enumerate() {
        item.key = format!("{}[{index}]", list.key);
    }
    items.iter().filter_map(|item| step(item, scope)).collect()
}

pub(super) fn step(item: &Item<'_>, scope: &mut Scope<'_>) -> Option<Step> {
    let fields = item.table()?;
    let Some((first, value)) = fields.entries().next() else {
        item.report(
            "this step is empty",
            "write a step such as { run = \"10ms\" }",
        );
        return None;
    };
    let Some(verb) = verbs::find(&first.key) else {
        let what = format!("`{}` is not a step", first.key);
        item.report(what, other_verb(&fields, &first.key));
        return None;
    };
    scope.names.uses(verb.key[0].name);
    let mut table = Table {
        fields: &fields,
        keys: &[keys::WHEN, &verb.key, verb.keys],
        scope,
        spot: spot(&value),
    };
    let when = table.item("when");
    let when = when.map(|item| when_holds(&item, table.scope));
    let action = (verb.read)(&mut table);
    table.check_the_rest();
    fields.finish();
    let when = match when {
        Some(when) => Some(when?),
        None => None,
    };
    Some(Step {
        action: action?,
        when,
        spot: table.spot,
    })
}

/// What to write where the first key of a step is no verb.
fn other_verb(fields: &Fields<'_>, first: &str) -> String {
    let mut later = fields
        .entries()
        .map(|(entry, _)| entry.key.as_str())
        .filter(|key| verbs::find(key).is_some());
    match later.next() {
        Some(verb) => format!("write `{verb}` first"),
        None => did_you_mean(first, verbs::verbs()),
    }
}

/// `setting = word`.
fn when_holds(item: &Item<'_>, scope: &Scope<'_>) -> Option<When> {
    let text = item.text()?;
    let Some((name, word)) = text.split_once('=') else {
        return item.wrong("a choice and one of its words, as in \"fragments = room\"");
    };
    let (name, word) = (name.trim(), word.trim());
    let Some((setting, words)) = scope.names.words.get(name) else {
        let known: Vec<&str> = scope.names.words.keys().map(String::as_str).collect();
        let help = match known.is_empty() {
            true => "declare one with `choices` in [settings]".to_owned(),
            false => did_you_mean(name, known),
        };
        item.report(format!("no setting `{name}` is a choice"), help);
        return None;
    };
    let Some(number) = words.iter().position(|known| known == word) else {
        let known = words.iter().map(String::as_str);
        item.unknown(format!("`{name}` is never \"{word}\""), word, known);
        return None;
    };
    Some(When {
        setting: SettingId(*setting),
        word: number as u32,
    })
}

/// Whether a step may be one of a row: whatever stands alone and starts, ends and repeats nothing.
pub(super) fn in_a_row(step: &Step, item: &Item<'_>) -> bool {
    let may = matches!(
        step.action,
        Action::Raise(_)
            | Action::Lower(_)
            | Action::Put(_)
            | Action::Take(_)
            | Action::Send { .. }
            | Action::Receive { .. }
            | Action::Reply { .. }
            | Action::Signal { .. }
            | Action::Barrier(_)
            | Action::Yield
            | Action::Touch(_)
            | Action::Count { .. }
            | Action::Begin { due: false, .. }
            | Action::End(_)
    );
    if !may {
        let help = "use raise, lower, put, take, send, receive, reply, signal, barrier, yield, touch, \
                    count, begin or end";
        item.report("this step cannot be in a row", help);
    }
    may
}
