//! Where an experiment's text comes from, and what the command line changes in it.
//!
//! A change (`--machine`, `--set`) is an edit of the text, made before anything is checked. So it
//! obeys the rules of the files, and what is wrong with it is told as for a file.

use std::fs;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, Value};

use crate::failure::Failure;
use crate::shipped;

/// An experiment that is yet to be read.
#[derive(Clone, Debug)]
pub struct Source {
    /// What to call it in messages; its stem becomes the id.
    pub file: String,
    /// The TOML.
    pub text: String,
}

/// What the command line changes in every experiment that it names.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Another machine.
    pub machine: Option<String>,
    /// Settings, by their plain or dotted names.
    pub settings: Vec<(String, String)>,
}

impl Source {
    /// The file `name`, or the shipped experiment of that name.
    ///
    /// # Errors
    /// When there is neither, or the file cannot be read.
    pub fn open(name: &str) -> Result<Source, Failure> {
        if let Some(shipped) = shipped::find(name).filter(|_| !Path::new(name).exists()) {
            return Ok(Source::shipped(shipped));
        }
        let text = fs::read_to_string(name).map_err(|error| unreadable(name, &error))?;
        let file = name.to_owned();
        Ok(Source { file, text })
    }

    /// An experiment that comes with WarmQ.
    pub fn shipped(shipped: shipped::Shipped) -> Source {
        Source {
            file: format!("{}.toml", shipped.id),
            text: shipped.text.to_owned(),
        }
    }

    /// The same with `changes` made. A text that is not TOML stays as it is: its reader says so.
    pub fn changed(mut self, changes: &Changes) -> Source {
        if changes.machine.is_none() && changes.settings.is_empty() {
            return self;
        }
        let Ok(mut document) = self.text.parse::<DocumentMut>() else {
            return self;
        };
        if let Some(machine) = &changes.machine {
            document.insert("machine", toml_edit::value(machine));
        }
        for (name, value) in &changes.settings {
            set(document.as_table_mut(), name, value);
        }
        self.text = document.to_string();
        self
    }
}

/// Puts `value` under `settings.NAME`; a dotted name leads through tables.
fn set(document: &mut Table, name: &str, value: &str) {
    let table = || Item::Table(Table::new());
    let mut place = document.entry("settings").or_insert_with(table);
    for key in name.split('.') {
        if !place.is_table_like() {
            *place = table();
        }
        place = &mut place[key];
    }
    // As in a file where that is a number or a switch, else a text: no quotes to type in a shell.
    let value = value.parse::<Value>().unwrap_or_else(|_| value.into());
    *place = Item::Value(value);
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    let what = format!("{name}: cannot read it: {error}");
    let mend = match error.kind() {
        std::io::ErrorKind::NotFound => {
            let ids: Vec<&str> = shipped::all().map(|it| it.id).collect();
            format!(
                "give a file, or one that comes with warmq: {}",
                ids.join(", ")
            )
        }
        _ => "give the file of an experiment".to_owned(),
    };
    Failure::usage(what, mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, machine: Option<&str>, settings: &[(&str, &str)]) -> String {
        let settings = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let changes = Changes {
            machine: machine.map(str::to_owned),
            settings: settings.collect(),
        };
        let (file, text) = ("trial.toml".to_owned(), text.to_owned());
        Source { file, text }.changed(&changes).text
    }

    #[test]
    fn a_change_edits_its_key_and_leaves_the_rest() {
        let text = "machine = \"a\"\n[settings]\ncolors = 1\n[sweep]\ncpus = [1]\n";
        let (machine, settings) = (Some("b"), [("colors", "32"), ("l2", "512KB")]);
        assert_eq!(
            changed(text, machine, &settings),
            "machine = \"b\"\n[settings]\ncolors = 32\nl2 = \"512KB\"\n[sweep]\ncpus = [1]\n"
        );
    }

    #[test]
    fn a_setting_needs_no_table_to_go_into() {
        let changed = changed("title = \"a\"\n", None, &[("scheduler.colors", "4")]);
        let document: DocumentMut = changed.parse().unwrap();
        assert_eq!(
            document["settings"]["scheduler"]["colors"].as_integer(),
            Some(4)
        );
    }

    #[test]
    fn what_is_no_toml_stays_as_it_is() {
        assert_eq!(changed("= =", Some("b"), &[]), "= =");
    }
}
