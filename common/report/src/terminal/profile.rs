//! Profiles of compiled schedulers as tables, all figures for each switch.

use std::fmt::Write;

use comfy_table::{Cell, Table};

use super::Terminal;
use crate::profile::{self, Column, columns, short_columns};
use crate::{Profile, Spot, Work};

const LEGEND: &str = "\
ns: simulated time, with that of helpers and kfuncs; locked: the part of it under a run queue's lock
lines: accesses of lines of memory; L2, L3, other CPU, memory: where those were found that missed L1";

/// How many of the most expensive functions and lines are shown.
const SHOWN: usize = 12;
/// Letters of a line's text that are shown.
const TEXT_SHOWN: usize = 36;

impl Terminal {
    /// What the programs of schedulers did: side by side, then each by callbacks, functions, calls
    /// and lines. Empty, if nobody profiled.
    pub fn profiles(self, profiles: &[Profile]) -> String {
        let mut text = String::new();
        let (with, without): (Vec<_>, Vec<_>) =
            profiles.iter().partition(|profile| profile.has_program());
        for profile in without {
            let _ = writeln!(text, "{}", profile.nothing());
        }
        if with.len() > 1 {
            let table = self.side_by_side(&with);
            let _ = writeln!(
                text,
                "\nside by side, for each switch\n{}",
                table.trim_fmt()
            );
        }
        if !with.is_empty() {
            let _ = writeln!(text, "{LEGEND}");
        }
        for profile in with {
            self.profile(&mut text, profile);
        }
        text
    }

    fn profile(self, text: &mut String, profile: &Profile) {
        let _ = writeln!(text, "\n{}", profile.sentence());
        let functions = profile.functions();
        let shown = &functions[..functions.len().min(SHOWN)];
        let mut callbacks = self.spots(profile, "callback", &profile.callbacks);
        callbacks.add_row(all(profile));
        let functions = self.spots(profile, "function", shown);
        for table in [
            callbacks,
            functions,
            self.lines(profile),
            self.calls(profile),
        ] {
            let _ = writeln!(text, "{}", table.trim_fmt());
        }
    }

    fn spots(self, profile: &Profile, what: &str, spots: &[Spot]) -> Table {
        let columns = columns(profile);
        let rows = spots.iter().map(|spot| {
            let times = spot.times.map(|times| profile.a_switch(times as f64));
            let head = vec![Cell::new(&spot.name), times.map_or(Cell::new(""), figure)];
            [head, row(profile, &columns, &spot.work)].concat()
        });
        self.ruled(heads(&[what, "times"], &columns), 2, rows)
    }

    fn lines(self, profile: &Profile) -> Table {
        let (columns, lines) = (short_columns(), profile.lines());
        let rows = lines.iter().take(SHOWN).map(|(function, line)| {
            let text: String = line.text.chars().take(TEXT_SHOWN).collect();
            let head = format!("{} {function}\n  {text}", line.name);
            [vec![Cell::new(head)], row(profile, &columns, &line.work)].concat()
        });
        self.ruled(heads(&["line, function, text"], &columns), 1, rows)
    }

    fn calls(self, profile: &Profile) -> Table {
        let mut calls: Vec<(&String, &u64)> = profile.work.calls.iter().collect();
        calls.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let rows = calls.into_iter().map(|(name, count)| {
            let count = profile.a_switch(*count as f64);
            vec![Cell::new(name), figure(count)]
        });
        self.ruled(["helper or kfunc", "calls"], 1, rows)
    }

    /// Time, instructions and misses of each callback, a column a scheduler.
    fn side_by_side(self, profiles: &[&Profile]) -> Table {
        let heads = ["ns", "instr.", "misses"].into_iter().flat_map(|head| {
            let names = profiles.iter();
            names.map(move |profile| format!("{head} {}", profile.scheduler))
        });
        let heads = std::iter::once("callback".to_owned()).chain(heads);
        let rows = profile::callback_names(profiles).into_iter().map(|name| {
            let work = |profile: &&Profile| profile.callback(name).map(|spot| spot.work.clone());
            beside(name, profiles, work)
        });
        let all = beside("all", profiles, |profile| Some(profile.work.clone()));
        self.ruled(heads, 1, rows.chain([all]))
    }
}

fn heads<'c>(first: &[&'c str], columns: &[Column]) -> Vec<&'c str> {
    let names = columns.iter().map(|column| column.name);
    first.iter().copied().chain(names).collect()
}

fn beside(
    name: &str,
    profiles: &[&Profile],
    work: impl Fn(&&Profile) -> Option<Work>,
) -> Vec<Cell> {
    let figures: [fn(&Work) -> f64; 3] = [
        |work| work.time.0 as f64 / 1e3,
        |work| work.instructions as f64,
        |work| work.misses() as f64,
    ];
    let mut row = vec![Cell::new(name)];
    for of in figures {
        let cells = profiles.iter().map(|profile| {
            let value = work(profile).map(|work| profile.a_switch(of(&work)));
            value.map_or(Cell::new("–"), figure)
        });
        row.extend(cells);
    }
    row
}

fn row(profile: &Profile, columns: &[Column], work: &Work) -> Vec<Cell> {
    let columns = columns.iter();
    columns
        .map(|column| figure(column.of(profile, work)))
        .collect()
}

/// What all callbacks did together.
fn all(profile: &Profile) -> Vec<Cell> {
    let head = vec![Cell::new("all"), Cell::new("")];
    [head, row(profile, &columns(profile), &profile.work)].concat()
}

fn figure(value: f64) -> Cell {
    Cell::new(profile::figure(value))
}
