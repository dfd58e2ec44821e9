//! Options of a loader: what can be set by a name of its own, and which variables that sets.
//!
//! ```toml
//! [option.slice]
//! what = "the longest slice"
//! default = "4ms"                        # a time, a whole number, true or false
//! least = "100us"
//! most = "1s"
//! no_more_than = "lag_max"               # another option, which this one does not exceed
//! set = { "policy.slice_max" = "value" } # as [set]; `value` is what was chosen, a time in ns
//! [option.place]
//! what = "where a group lives"
//! default = "llc"
//! [option.place.values]                  # one of these names, each with what it sets
//! llc = { by_cpu = false, places = "llcs" }
//! cpu = { by_cpu = true, places = "cpus" }
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use warmq_config::{Kind, Setting, Value as Chosen};
use warmq_units::Duration;

use crate::load::Value;
use crate::path::Of;
use crate::profile::Term;

/// Variables, and what they are set to.
pub(crate) type Sets = BTreeMap<String, Term>;

/// An option of a loader.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct LoaderOption {
    /// Without its name and its source.
    setting: Setting,
    /// The option that it does not exceed.
    pub(crate) no_more_than: Option<String>,
    /// What a number sets.
    set: Sets,
    /// What each name sets.
    values: BTreeMap<String, Sets>,
}

/// An option, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    what: String,
    default: Plain,
    least: Option<Plain>,
    most: Option<Plain>,
    no_more_than: Option<String>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    set: Sets,
    #[serde(default)]
    values: BTreeMap<String, Sets>,
}

/// A value, as it is written.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Plain {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl TryFrom<Written> for LoaderOption {
    type Error = String;

    fn try_from(written: Written) -> Result<LoaderOption, String> {
        let setting = written.setting()?;
        let refused = |what: &str| Err(format!("{what} (docs/your-scheduler.md)"));
        if !setting.kind.admits(&setting.default) {
            return refused(&format!(
                "default = {} is not {}",
                setting.default,
                setting.kind.allowed()
            ));
        }
        if written.set.is_empty() == written.values.is_empty() {
            return refused(
                "an option has either `set` or `values`: write which variables it sets",
            );
        }
        Ok(LoaderOption {
            setting: setting.says(&written.what, ""),
            no_more_than: written.no_more_than,
            set: written.set,
            values: written.values,
        })
    }
}

impl Written {
    fn setting(&self) -> Result<Setting, String> {
        if !self.values.is_empty() {
            let names: Vec<&str> = self.values.keys().map(String::as_str).collect();
            let Plain::Text(default) = &self.default else {
                return Err(format!("`default` is one of {}", names.join(", ")));
            };
            let default = Chosen::Text(default.clone());
            let choice = Setting::choice("", &names);
            return Ok(Setting { default, ..choice });
        }
        match &self.default {
            Plain::Flag(flag) => Ok(Setting::flag("", *flag)),
            Plain::Number(number) => {
                let bounds = (count(&self.least, "least")?, count(&self.most, "most")?);
                Ok(Setting::count("", bounds, *number, &self.unit))
            }
            Plain::Text(text) => {
                let bounds = (time(&self.least, "least")?, time(&self.most, "most")?);
                Ok(Setting::duration("", bounds, span(text, "default")?))
            }
        }
    }
}

fn count(bound: &Option<Plain>, key: &str) -> Result<i64, String> {
    match bound {
        Some(Plain::Number(number @ 0..)) => Ok(*number),
        _ => Err(format!(
            "`{key}` is missing: write a whole number, at least 0"
        )),
    }
}

fn time(bound: &Option<Plain>, key: &str) -> Result<Duration, String> {
    match bound {
        Some(Plain::Text(text)) => span(text, key),
        _ => Err(format!("`{key}` is missing: write a time, as in \"4ms\"")),
    }
}

fn span(text: &str, key: &str) -> Result<Duration, String> {
    let read = text.parse();
    read.map_err(|_| format!("`{key}` = \"{text}\" is no time: write one as in \"4ms\""))
}

impl LoaderOption {
    /// How it is set and described.
    pub(crate) fn setting(&self, name: &str, source: &str) -> Setting {
        Setting {
            name: name.to_owned(),
            source: source.to_owned(),
            ..self.setting.clone()
        }
    }

    /// Its value if nothing is chosen.
    pub(crate) fn default(&self) -> Value {
        Value::from(&self.setting.default)
    }

    /// Whether a number is more than another.
    pub(crate) fn exceeds(value: &Value, bound: &Value) -> bool {
        match (value, bound) {
            (Value::Number(number), Value::Number(most)) => number > most,
            _ => false,
        }
    }

    /// A value as people write it.
    pub(crate) fn shown(&self, value: &Value) -> String {
        match (&self.setting.kind, value) {
            (Kind::Duration { .. }, Value::Number(ns)) => {
                Duration::from_ns(u64::try_from(*ns).unwrap_or(0)).exact()
            }
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Bytes(_)) => "bytes".to_owned(),
        }
    }

    /// What `value` sets, and the number that `value` is in it.
    ///
    /// # Errors
    /// A value that it cannot have.
    pub(crate) fn sets(&self, value: &Value) -> Result<(&Sets, Of), String> {
        let refused = || format!("it is {}", self.setting.kind.allowed());
        match value {
            Value::Number(number) if self.values.is_empty() => {
                let number = usize::try_from(*number).map_err(|_| refused())?;
                Ok((&self.set, Of::from([("value", number)])))
            }
            Value::Text(name) => {
                let named = self.values.get(name).ok_or_else(refused)?;
                Ok((named, Of::new()))
            }
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::profile::Profile;

    const HEAD: &str = "name = \"a\"\nsource = \"b\"\n";
    const OPTIONS: &str = r#"
[option.slice]
what = "the longest slice"
default = "4ms"
least = "1ms"
most = "1s"
no_more_than = "lag"
set = { "policy.slice" = "value" }
[option.lag]
what = "the most lag"
default = "40ms"
least = "1ms"
most = "1s"
set = { lag = "value" }
[option.groups]
what = "how many groups there may be"
default = 7
least = 1
most = 9
unit = "groups"
set = { groups = "value+1" }
[option.place]
what = "where a group lives"
default = "llc"
[option.place.values]
llc = { by_cpu = false }
cpu = { by_cpu = true, places = "cpus" }
"#;

    fn set(chosen: &[(&str, Value)]) -> Result<Vec<(String, Value)>, String> {
        let profile = Profile::read(&format!("{HEAD}{OPTIONS}"))?;
        let chosen = chosen.iter();
        let chosen = chosen.map(|(name, value)| ((*name).to_owned(), value.clone()));
        let facts = Facts::of_places(vec![Default::default(); 3]);
        profile.variables(&facts, &chosen.collect::<Vec<_>>())
    }

    fn numbers(numbers: &[(&str, i128)]) -> Vec<(String, Value)> {
        let number = |(name, number): &(&str, i128)| ((*name).to_owned(), Value::Number(*number));
        numbers.iter().map(number).collect()
    }

    #[test]
    fn an_option_sets_its_variables() {
        let usual = [
            ("groups", 8),
            ("lag", 40_000_000),
            ("by_cpu", 0),
            ("policy.slice", 4_000_000),
        ];
        assert_eq!(set(&[]), Ok(numbers(&usual)));
        let chosen = [
            ("place", Value::Text("cpu".to_owned())),
            ("groups", Value::Number(2)),
        ];
        let expected = [
            ("groups", 3),
            ("lag", 40_000_000),
            ("by_cpu", 1),
            ("places", 3),
            ("policy.slice", 4_000_000),
        ];
        assert_eq!(set(&chosen), Ok(numbers(&expected)));
    }

    #[test]
    fn an_option_that_exceeds_another_is_refused() {
        let why = set(&[("lag", Value::Number(2_000_000))]).unwrap_err();
        assert_eq!(
            why,
            "slice = 4ms is more than lag = 2ms: lower slice, or raise lag"
        );
    }

    #[test]
    fn a_wrong_option_is_refused_with_its_place() {
        let table = [
            ("default = 1\nset = { x = \"value\" }", "`least` is missing"),
            (
                "default = \"4\"\nleast = \"1ms\"\nmost = \"1s\"",
                "is no time",
            ),
            ("default = true", "either `set` or `values`"),
            (
                "default = 9\nleast = 1\nmost = 4\nset = { x = \"value\" }",
                "default = 9 is not a whole number from 1 to 4",
            ),
            (
                "default = \"c\"\nvalues = { a = { x = 1 } }",
                "default = c is not",
            ),
            (
                "default = 1\nvalues = { a = { x = 1 } }",
                "`default` is one of a",
            ),
            ("default = true\nsets = { x = 1 }", "unknown field `sets`"),
        ];
        for (text, why) in table {
            let text = format!("{HEAD}[option.x]\nwhat = \"x\"\n{text}\n");
            let refused = Profile::read(&text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
            assert!(refused.contains("line "), "{text}: {refused}");
        }
    }
}
