//! Profiles of compiled schedulers on the page: a bar for each callback, below it its functions,
//! below these their lines, all as wide as the time that they take; then the same in figures.

use maud::{Markup, html};

use super::table::figures;
use crate::chart::{color, hex};
use crate::profile::{callback_names, columns, figure, short_columns};
use crate::{Profile, Spot};

/// Units of the picture: its width, the height of a level, and the width of a letter.
const WIDTH: f64 = 1000.0;
const LEVEL: f64 = 26.0;
const LETTER: f64 = 6.8;
/// Narrower bars are not drawn.
const NARROWEST: f64 = 0.5;
/// How opaque the levels are.
const OPACITY: [&str; 3] = ["0.75", "0.5", "0.28"];
const LINES_SHOWN: usize = 12;

/// All profiles of a section, on one scale of time.
pub(crate) fn profiles(profiles: &[Profile]) -> Markup {
    let with: Vec<&Profile> = profiles.iter().filter(|one| one.has_program()).collect();
    let a_switch = |profile: &&Profile| profile.a_switch(profile.work.time.0 as f64);
    let picture = Picture {
        callbacks: callback_names(&with),
        longest: with.iter().map(a_switch).fold(f64::MIN_POSITIVE, f64::max),
    };
    html! {
        @if !profiles.is_empty() {
            h3 { "Profiles of compiled schedulers" }
            @if !with.is_empty() {
                p { "Callbacks, their functions, and the lines of these, as wide as the time that each takes of a \
                     switch; all pictures have the same scale." }
            }
            @for profile in profiles {
                @if profile.has_program() { (one(profile, &picture)) } @else { p { (profile.nothing()) } }
            }
        }
    }
}

/// What the pictures of all profiles have in common.
struct Picture<'p> {
    /// Which gives each callback its color.
    callbacks: Vec<&'p str>,
    /// What the program takes of a switch that takes the longest, in picoseconds.
    longest: f64,
}

fn one(profile: &Profile, picture: &Picture<'_>) -> Markup {
    let height = 3.0 * LEVEL;
    let alt = format!(
        "Bars as wide as the time of each callback, function and line. {}",
        profile.sentence()
    );
    html! {
        figure.full.profile {
            p.title { (profile.sentence()) }
            div.scroll tabindex="0" role="region" aria-label=(format!("Profile of {}", profile.scheduler)) {
                svg.flames viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(alt) {
                    (flames(profile, picture))
                }
            }
            details { summary { "In figures" } (callbacks(profile)) (lines(profile)) }
        }
    }
}

fn flames(profile: &Profile, picture: &Picture<'_>) -> Markup {
    let mut drawn = Drawn {
        profile,
        scale: WIDTH / picture.longest / profile.switches.max(1) as f64,
        bars: Vec::new(),
    };
    let mut left = 0.0;
    for callback in &profile.callbacks {
        let mut names = picture.callbacks.iter();
        let hue = names.position(|name| *name == callback.name);
        left += drawn.bar(callback, (0, left), hue.unwrap_or(0));
    }
    html! { @for bar in drawn.bars { (bar) } }
}

/// The bars of a profile so far.
struct Drawn<'p> {
    profile: &'p Profile,
    /// Picoseconds to units of the picture.
    scale: f64,
    bars: Vec<Markup>,
}

impl Drawn<'_> {
    /// Draws `spot` at a level and what is in it below; answers how wide it is.
    fn bar(&mut self, spot: &Spot, (depth, left): (usize, f64), hue: usize) -> f64 {
        let width = spot.work.time.0 as f64 * self.scale;
        if width < NARROWEST {
            return width;
        }
        self.bars
            .push(bar(self.profile, spot, (depth, left, width), hue));
        let mut at = left;
        for inside in &spot.inside {
            at += self.bar(inside, (depth + 1, at), hue);
        }
        width
    }
}

fn bar(
    profile: &Profile,
    spot: &Spot,
    (depth, left, width): (usize, f64, f64),
    hue: usize,
) -> Markup {
    let top = depth as f64 * LEVEL;
    let name = fitting(&spot.name, ((width - 6.0) / LETTER) as usize);
    let number = |value: f64| format!("{value:.2}");
    html! {
        g {
            title { (hint(profile, spot)) }
            rect x=(number(left)) y=(number(top)) width=(number(width)) height=(LEVEL - 1.0)
                fill=(hex(color(hue))) fill-opacity=(OPACITY[depth.min(2)]) {}
            @if !name.is_empty() {
                text x=(number(left + 3.0)) y=(number(top + LEVEL * 0.66)) { (name) }
            }
        }
    }
}

/// A name in so many letters: of a line its number, if no more fits.
fn fitting(name: &str, letters: usize) -> String {
    let number = name.rsplit_once(':').map_or("", |(_, number)| number);
    match letters {
        _ if name.chars().count() <= letters => name.to_owned(),
        _ if !number.is_empty() && number.len() <= letters => number.to_owned(),
        ..4 => String::new(),
        _ if !number.is_empty() => String::new(),
        _ => name.chars().take(letters - 1).chain(['…']).collect(),
    }
}

/// What a bar says when somebody points at it.
fn hint(profile: &Profile, spot: &Spot) -> String {
    let columns = columns(profile);
    let figures = columns.iter().map(|column| {
        let value = column.of(profile, &spot.work);
        format!("{} {}", figure(value), column.name)
    });
    let text = match spot.text.as_str() {
        "" => String::new(),
        text => format!("\n{text}"),
    };
    format!("{}: {}{text}", spot.name, itertools::join(figures, ", "))
}

fn callbacks(profile: &Profile) -> Markup {
    let columns = columns(profile);
    let all = Spot {
        name: "all".to_owned(),
        work: profile.work.clone(),
        ..Spot::default()
    };
    let caption = html! { "Callbacks, for each switch" };
    let heads = html! { tr {
        th.key scope="col" { "callback" }
        th.number scope="col" { "times" }
        @for column in &columns { th.number scope="col" { (column.name) } }
    } };
    let lines = html! { @for spot in profile.callbacks.iter().chain([&all]) { tr {
        th.key scope="row" { (spot.name) }
        td.number { @if let Some(times) = spot.times { (figure(profile.a_switch(times as f64))) } }
        @for column in &columns { td.number { (figure(column.of(profile, &spot.work))) } }
    } } };
    figures("Callbacks", caption, heads, lines)
}

fn lines(profile: &Profile) -> Markup {
    let columns = short_columns();
    let caption = html! { "The most expensive lines, for each switch" };
    let heads = html! { tr {
        th.key scope="col" { "line" }
        th.key scope="col" { "function" }
        @for column in &columns { th.number scope="col" { (column.name) } }
        th.key scope="col" { "text" }
    } };
    let lines = html! { @for (function, line) in profile.lines().iter().take(LINES_SHOWN) { tr {
        th.key scope="row" { (line.name) }
        td { (function) }
        @for column in &columns { td.number { (figure(column.of(profile, &line.work))) } }
        td { code { (line.text) } }
    } } };
    figures("Lines", caption, heads, lines)
}
