//! `[settings]`: what can be set.

use warmq_config::{Fields, Item, NodeKind, Setting, Value};
use warmq_units::{Bytes, Duration};

use super::scope::of_machine;
use crate::expr::{Known, SettingId, literal};
use crate::quantity::Quantity;
use crate::site::Resource;

/// The settings, and what their names stand for in expressions.
pub(super) fn read(fields: &Fields<'_>) -> (Vec<Setting>, Vec<(String, Known)>) {
    let (mut settings, mut names) = (Vec::new(), Vec::new());
    let Some(table) = fields.table("settings") else {
        return (settings, names);
    };
    for (entry, item) in table.entries() {
        if !is_identifier(&entry.key) {
            let help = "write letters, digits and _, beginning with a letter";
            item.report("this cannot be the name of a setting", help);
            continue;
        }
        if Resource::of_number(&entry.key).is_some() {
            item.report(of_machine(&entry.key), "give the setting another name");
            continue;
        }
        if let Some((setting, quantity)) = setting(&entry.key, &item) {
            let id = SettingId(settings.len() as u32);
            let known = quantity.map_or(Known::Word, |quantity| Known::Setting(id, quantity));
            settings.push(setting);
            names.push((entry.key.clone(), known));
        }
    }
    (settings, names)
}

/// True for what an expression can name.
pub(super) fn is_identifier(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name.bytes().all(inner)
}

/// A setting, and what it counts unless it is a word.
fn setting(name: &str, item: &Item<'_>) -> Option<(Setting, Option<Quantity>)> {
    if !matches!(item.node.kind, NodeKind::Table(_)) {
        return numeric(name, item, None, None);
    }
    let table = item.table()?;
    let (least, most) = (table.item("least"), table.item("most"));
    let choices = table.item("choices");
    let default = table.required("default", "write the value where none is chosen");
    let (what, source) = (table.text("what"), table.text("source"));
    table.finish();
    let unordered = choices.is_some()
        || default
            .as_ref()
            .is_some_and(|item| matches!(item.node.kind, NodeKind::Bool(_)));
    if let Some(bound) = least.as_ref().or(most.as_ref()).filter(|_| unordered) {
        bound.report("only numbers have bounds", "leave it out");
    }
    let (setting, quantity) = match &choices {
        Some(choices) => (choice(name, &default?, choices)?, None),
        None => numeric(name, &default?, least, most)?,
    };
    let (what, source) = (what.unwrap_or_default(), source.unwrap_or_default());
    Some((setting.says(&what, &source), quantity))
}

fn choice(name: &str, default: &Item<'_>, choices: &Item<'_>) -> Option<Setting> {
    let words: Option<Vec<String>> = choices.list()?.iter().map(Item::text).collect();
    let (words, default) = (words?, default);
    let chosen = default.text()?;
    if !words.contains(&chosen) {
        let known = words.iter().map(String::as_str);
        default.unknown(
            format!("\"{chosen}\" is not one of the choices"),
            &chosen,
            known,
        );
        return None;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let setting = Setting::choice(name, &words);
    let default = Value::Text(chosen);
    Some(Setting { default, ..setting })
}

fn numeric(
    name: &str,
    default: &Item<'_>,
    least: Option<Item<'_>>,
    most: Option<Item<'_>>,
) -> Option<(Setting, Option<Quantity>)> {
    if let NodeKind::Bool(flag) = default.node.kind {
        return Some((Setting::flag(name, flag), Some(Quantity::Count)));
    }
    let (value, quantity) = number(default)?;
    let bound = |item: Option<Item<'_>>, otherwise| match item {
        Some(item) => same(&item, quantity),
        None => Some(otherwise),
    };
    let (least, most) = (bound(least, 0)?, bound(most, i64::MAX)?);
    if !(least..=most).contains(&value) {
        default.report(
            "the default is not between `least` and `most`",
            "change one of them",
        );
        return None;
    }
    Some((
        of_quantity(name, quantity, (least, most), value),
        Some(quantity),
    ))
}

fn of_quantity(name: &str, quantity: Quantity, bounds: (i64, i64), value: i64) -> Setting {
    let (least, most) = (bounds.0.unsigned_abs(), bounds.1.unsigned_abs());
    let default = value.unsigned_abs();
    match quantity {
        Quantity::Count => Setting::count(name, bounds, value, ""),
        Quantity::Cycles => Setting::count(name, bounds, value, "cycles"),
        Quantity::Time => {
            let bounds = (Duration(least), Duration(most));
            Setting::duration(name, bounds, Duration(default))
        }
        Quantity::Size => Setting::bytes(name, (Bytes(least), Bytes(most)), Bytes(default)),
    }
}

/// A number from 0 with its unit.
fn number(item: &Item<'_>) -> Option<(i64, Quantity)> {
    let read = match &item.node.kind {
        NodeKind::Integer(count) => Some((*count, Quantity::Count)),
        NodeKind::Text(text) => literal(text),
        _ => None,
    };
    let wanted = "a number, a time, a size, cycles, true or false; \
                  or name the words that are allowed in `choices`";
    read.filter(|(value, _)| *value >= 0)
        .or_else(|| item.wrong(wanted))
}

fn same(item: &Item<'_>, quantity: Quantity) -> Option<i64> {
    let (value, found) = number(item)?;
    if found != quantity {
        item.report(
            format!(
                "this is {}, and the default is {}",
                found.name(),
                quantity.name()
            ),
            "write all values of a setting in the same kind of unit",
        );
        return None;
    }
    Some(value)
}
