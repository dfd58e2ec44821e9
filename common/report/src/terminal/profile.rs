//! Profiles of compiled schedulers as tables, all figures for each switch.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Cell, Table};

use super::{RULED, Terminal, right};
use crate::profile::{Column, columns};
use crate::{Profile, Spot, number};

/// How many of the most expensive lines are shown.
const LINES_SHOWN: usize = 12;
/// Letters of a line's text that are shown.
const TEXT_SHOWN: usize = 44;

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
            let _ = writeln!(text, "\nside by side, for each switch\n{}", table.trim_fmt());
        }
        for profile in with {
            self.profile(&mut text, profile);
        }
        text
    }

    fn profile(self, text: &mut String, profile: &Profile) {
        let _ = writeln!(text, "\n{}", profile.sentence());
        let callbacks = self.spots(profile, "callback", &profile.callbacks, true);
        let functions = self.spots(profile, "function", &profile.functions(), false);
        for table in [callbacks, functions, self.calls(profile), self.lines(profile)] {
            let _ = writeln!(text, "{}", table.trim_fmt());
        }
    }

    fn spots(self, profile: &Profile, what: &str, spots: &[Spot], total: bool) -> Table {
        let columns = columns(profile);
        let mut table = self.of(&[what, "times"], &columns);
        for spot in spots {
            let times = spot.times.map(|times| profile.a_switch(times as f64));
            let head = [Cell::new(&spot.name), times.map_or(Cell::new(""), figure)];
            table.add_row(head.into_iter().chain(row(profile, &columns, spot)));
        }
        if total {
            let head = [Cell::new("all"), Cell::new("")];
            let all = Spot {
                work: profile.work.clone(),
                ..Spot::default()
            };
            table.add_row(head.into_iter().chain(row(profile, &columns, &all)));
        }
        table
    }

    fn lines(self, profile: &Profile) -> Table {
        let columns = columns(profile);
        let mut table = self.of(&["line", "function", "text"], &columns);
        for (function, line) in profile.lines().iter().take(LINES_SHOWN) {
            let text: String = line.text.chars().take(TEXT_SHOWN).collect();
            let head = [&line.name, function, &text].map(Cell::new);
            table.add_row(head.into_iter().chain(row(profile, &columns, line)));
        }
        table
    }

    fn calls(self, profile: &Profile) -> Table {
        let mut table = self.table(RULED);
        table.set_header(["helper or kfunc", "calls"]);
        right(&mut table, 1);
        let mut calls: Vec<(&String, &u64)> = profile.work.calls.iter().collect();
        calls.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        for (name, count) in calls {
            let count = profile.a_switch(*count as f64);
            table.add_row([Cell::new(name), figure(count)]);
        }
        table
    }

    fn of(self, heads: &[&str], columns: &[Column]) -> Table {
        let mut table = self.table(RULED);
        let names = columns.iter().map(|column| column.name);
        table.set_header(heads.iter().copied().chain(names));
        for column in heads.len()..heads.len() + columns.len() {
            right(&mut table, column);
        }
        table
    }

    /// Time, instructions and misses of each callback, a column a scheduler.
    fn side_by_side(self, profiles: &[&Profile]) -> Table {
        let mut callbacks: BTreeMap<&str, Vec<Option<&Spot>>> = BTreeMap::new();
        for (at, profile) in profiles.iter().enumerate() {
            for spot in &profile.callbacks {
                let row = callbacks.entry(&spot.name);
                row.or_insert_with(|| vec![None; profiles.len()])[at] = Some(spot);
            }
        }
        let mut table = self.table(RULED);
        let heads = ["ns", "instructions", "misses"];
        let heads = heads.iter().flat_map(|head| {
            let names = profiles.iter();
            names.map(move |profile| format!("{head} {}", profile.scheduler))
        });
        table.set_header(std::iter::once("callback".to_owned()).chain(heads));
        for column in 1..=3 * profiles.len() {
            right(&mut table, column);
        }
        for (name, spots) in &callbacks {
            table.add_row(beside(name, profiles, |at| spots[at].map(|spot| &spot.work)));
        }
        table.add_row(beside("all", profiles, |at| Some(&profiles[at].work)));
        table
    }
}

fn beside<'w>(
    name: &str,
    profiles: &[&Profile],
    work: impl Fn(usize) -> Option<&'w crate::Work>,
) -> Vec<Cell> {
    let figures: [fn(&crate::Work) -> f64; 3] = [
        |work| work.time.0 as f64 / 1e3,
        |work| work.instructions as f64,
        |work| work.misses() as f64,
    ];
    let mut row = vec![Cell::new(name)];
    for of in figures {
        let cells = profiles.iter().enumerate().map(|(at, profile)| {
            let value = work(at).map(|work| profile.a_switch(of(work)));
            value.map_or(Cell::new("–"), figure)
        });
        row.extend(cells);
    }
    row
}

fn row(profile: &Profile, columns: &[Column], spot: &Spot) -> Vec<Cell> {
    let columns = columns.iter();
    columns
        .map(|column| figure(column.of(profile, &spot.work)))
        .collect()
}

fn figure(value: f64) -> Cell {
    Cell::new(number::ours(value, ""))
}
