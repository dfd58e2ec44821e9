//! What can be set on a machine, a scheduler or a workload, described so that a value can be
//! checked and help can be printed.

use std::collections::BTreeMap;

use warmq_units::{Bytes, Duration};

use crate::{OfValue, Value};

/// One thing that can be set, with everything a person needs in order to set it.
///
/// Invariant: `default` is a value that `kind` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name by which an experiment sets or sweeps it: `colors`.
    pub name: String,
    /// What values it takes.
    pub kind: Kind,
    /// The unit of a count: `tasks`; empty where there is none or the kind says it.
    pub unit: String,
    /// Its value where none is chosen.
    pub default: Value,
    /// What it does, in a sentence.
    pub what: String,
    /// Where the default comes from: a paper, a kernel's source, a calibration.
    pub source: String,
}

/// What values a setting takes. All bounds are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// The least allowed.
        min: i64,
        /// The greatest allowed.
        max: i64,
    },
    /// A power of two.
    PowerOfTwo {
        /// The least allowed.
        min: i64,
        /// The greatest allowed.
        max: i64,
    },
    /// A size: `512KB`.
    Bytes {
        /// The least allowed.
        min: Bytes,
        /// The greatest allowed.
        max: Bytes,
    },
    /// A span of time: `300ms`.
    Duration {
        /// The least allowed.
        min: Duration,
        /// The greatest allowed.
        max: Duration,
    },
    /// One of a few names.
    Choice(Vec<String>),
    /// Any text of one line; a number is taken as it is written.
    Text,
}

impl Kind {
    /// What is allowed, as the middle of a sentence: `a whole number from 1 to 32`.
    pub fn allowed(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::PowerOfTwo { min, max } => format!("a power of two from {min} to {max}"),
            Kind::Bytes { min, max } => {
                let (min, max) = (Value::Bytes(*min), Value::Bytes(*max));
                format!("a size from \"{min}\" to \"{max}\"")
            }
            Kind::Duration { min, max } => {
                let (min, max) = (Value::Duration(*min), Value::Duration(*max));
                format!("a time from \"{min}\" to \"{max}\"")
            }
            Kind::Choice(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Kind::Text => "a text in quotes, on one line".to_owned(),
        }
    }

    /// Whether `value` is of this kind and within its bounds.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Bool, Value::Bool(_)) => true,
            (Kind::Integer { min, max }, Value::Integer(count)) => (min..=max).contains(&count),
            (Kind::PowerOfTwo { min, max }, Value::Integer(count)) => {
                (min..=max).contains(&count) && count.count_ones() == 1
            }
            (Kind::Bytes { min, max }, Value::Bytes(size)) => (min..=max).contains(&size),
            (Kind::Duration { min, max }, Value::Duration(span)) => (min..=max).contains(&span),
            (Kind::Choice(names), Value::Text(name)) => names.contains(name),
            (Kind::Text, Value::Text(text)) => !text.contains(['\n', '\0']),
            _ => false,
        }
    }
}

/// What was chosen for the settings of one part; what was not is at its default.
///
/// Invariant: every name chosen is one of the settings, and its kind admits the value.
#[derive(Clone, Debug)]
pub struct Chosen {
    settings: Vec<Setting>,
    values: BTreeMap<String, Value>,
}

impl Chosen {
    /// `values` for `settings`. The reader of a file has checked them before.
    ///
    /// # Errors
    /// The name of the first value that no setting admits.
    pub fn new(settings: Vec<Setting>, values: BTreeMap<String, Value>) -> Result<Chosen, String> {
        let admitted = |name: &str, value: &Value| {
            settings
                .iter()
                .any(|setting| setting.name == name && setting.kind.admits(value))
        };
        match values.iter().find(|(name, value)| !admitted(name, value)) {
            Some((name, _)) => Err(name.clone()),
            None => Ok(Chosen { settings, values }),
        }
    }

    /// Every one of `settings` at its default.
    pub fn defaults(settings: Vec<Setting>) -> Chosen {
        let values = BTreeMap::new();
        Chosen { settings, values }
    }

    /// The value of `name`, chosen or default.
    ///
    /// # Panics
    /// When there is no such setting: the names are the program's own.
    pub fn value(&self, name: &str) -> &Value {
        let default = || &self.setting(name).default;
        self.values.get(name).unwrap_or_else(default)
    }

    fn setting(&self, name: &str) -> &Setting {
        let found = self.settings.iter().find(|setting| setting.name == name);
        found.unwrap_or_else(|| panic!("no setting is called {name}"))
    }

    /// The value of `name` as the program has it.
    ///
    /// # Panics
    /// When the setting has another kind of value.
    pub fn get<T: OfValue>(&self, name: &str) -> T {
        let value = self.value(name);
        T::of_value(value).unwrap_or_else(|| panic!("{name} is of another kind: {value}"))
    }

    /// The count `name`, which is not negative.
    pub fn count(&self, name: &str) -> u64 {
        self.get(name)
    }

    /// The size `name`.
    pub fn bytes(&self, name: &str) -> Bytes {
        self.get(name)
    }

    /// The span `name`.
    pub fn duration(&self, name: &str) -> Duration {
        self.get(name)
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name)
    }

    /// The choice `name`.
    pub fn choice(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(choice) => choice,
            other => panic!("{name} is not a choice: {other}"),
        }
    }

    /// Every setting with its value, chosen or default.
    pub fn in_force(&self) -> impl Iterator<Item = (&Setting, &Value)> {
        self.settings
            .iter()
            .map(|setting| (setting, self.value(&setting.name)))
    }
}

impl Setting {
    /// A count from `min` to `max`.
    pub fn count(name: &str, bounds: (i64, i64), default: i64, unit: &str) -> Setting {
        let kind = Kind::Integer {
            min: bounds.0,
            max: bounds.1,
        };
        Setting::plain(name, kind, Value::Integer(default), unit)
    }

    /// A power of two from `min` to `max`.
    pub fn power_of_two(name: &str, bounds: (i64, i64), default: i64, unit: &str) -> Setting {
        let (min, max) = bounds;
        Setting::plain(
            name,
            Kind::PowerOfTwo { min, max },
            Value::Integer(default),
            unit,
        )
    }

    /// A size from `min` to `max`.
    pub fn bytes(name: &str, bounds: (Bytes, Bytes), default: Bytes) -> Setting {
        let kind = Kind::Bytes {
            min: bounds.0,
            max: bounds.1,
        };
        Setting::plain(name, kind, Value::Bytes(default), "")
    }

    /// A span from `min` to `max`.
    pub fn duration(name: &str, bounds: (Duration, Duration), default: Duration) -> Setting {
        let kind = Kind::Duration {
            min: bounds.0,
            max: bounds.1,
        };
        Setting::plain(name, kind, Value::Duration(default), "")
    }

    /// `true` or `false`.
    pub fn flag(name: &str, default: bool) -> Setting {
        Setting::plain(name, Kind::Bool, Value::Bool(default), "")
    }

    /// A text, `default` unless it is chosen.
    pub fn text(name: &str, default: &str) -> Setting {
        Setting::plain(name, Kind::Text, Value::Text(default.to_owned()), "")
    }

    /// One of `names`, the first by default.
    pub fn choice(name: &str, names: &[&str]) -> Setting {
        Setting::choice_of(name, names, names[0])
    }

    /// One of `names`, `default` unless it is chosen.
    pub fn choice_of(name: &str, names: &[&str], default: &str) -> Setting {
        let kind = Kind::Choice(names.iter().map(|name| (*name).to_owned()).collect());
        Setting::plain(name, kind, Value::Text(default.to_owned()), "")
    }

    fn plain(name: &str, kind: Kind, default: Value, unit: &str) -> Setting {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        Setting {
            name,
            kind,
            unit,
            default,
            what: String::new(),
            source: String::new(),
        }
    }

    /// What it does, in a sentence, and where the default comes from.
    pub fn says(self, what: &str, source: &str) -> Setting {
        Setting {
            what: what.to_owned(),
            source: source.to_owned(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_is_one_and_within_bounds() {
        let kind = Kind::PowerOfTwo { min: 1, max: 256 };
        let admitted = |count: i64| kind.admits(&Value::Integer(count));
        let powers: Vec<i64> = (-8..600).filter(|count| admitted(*count)).collect();
        assert_eq!(powers, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert!(!kind.admits(&Value::Bool(true)));
    }
}
