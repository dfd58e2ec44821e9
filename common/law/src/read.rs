//! A law file: a scenario with a table `law`.

use warmq_config::{Document, Fields, Item, NodeKind, Problems};
use warmq_metrics::{Described, described};
use warmq_scenario::{Scenario, WorldKind};
use warmq_units::{Duration, Release};

use crate::law::{Bound, Family, Law, Limit, Side};
use crate::meter;

/// The machine of a law that names none.
pub const MACHINE: &str = "small-4llc";
const CPUS: u64 = 2;
const WARMUP: Duration = Duration::from_ms(200);
const TIME: Duration = Duration::from_ms(2_000);
/// No law needs longer.
const LONGEST: Duration = Duration::from_s(120);

impl Law {
    /// Reads and checks the law `name`, the text of `file`.
    ///
    /// # Errors
    /// Everything that is wrong with the scenario, or else with the table `law`, each with its
    /// place and a fix.
    ///
    /// ```
    /// let text = r#"
    ///     title = "Two hogs of one nice share a CPU evenly"
    ///     [law]
    ///     family = "shares"
    ///     because = "their weights are the same"
    ///     cpus = 1
    ///     [[law.bound]]
    ///     figure = "hog_share_least"
    ///     at_least = 45
    ///     [task.hog]
    ///     count = 2
    ///     body = [{ run = "10ms" }]
    /// "#;
    /// let law = warmq_law::Law::read("even", "even.toml", text).unwrap();
    /// assert_eq!((law.cpus, law.bounds.len()), (1, 1));
    /// ```
    pub fn read(name: &str, file: &str, text: &str) -> Result<Law, Problems> {
        let document = Document::parse(file, text)?;
        let scenario = Scenario::of(document.clone())?;
        let figures = figures(&scenario);
        document.read(|fields| {
            let law = fields.required("law", "write [law]: a scenario without bounds is no law");
            law_of(name, &law?.table()?, &scenario, &figures)
        })
    }

    /// A scenario that is compared between worlds and judged by nothing, on so many CPUs.
    pub fn compared(name: &str, scenario: &Scenario, cpus: u16) -> Law {
        Law {
            name: name.to_owned(),
            family: Family::Scenarios,
            says: scenario.title().to_owned(),
            because: String::new(),
            machine: MACHINE.to_owned(),
            cpus,
            counted: false,
            warmup: WARMUP,
            time: TIME,
            skipped: Vec::new(),
            broken_by: None,
            bounds: Vec::new(),
            scenario: scenario.clone(),
        }
    }
}

/// Every figure that a bound may name, with those of each phase.
pub fn figures(scenario: &Scenario) -> Vec<Described> {
    let names = scenario.names();
    let mut all = described(&names);
    let of_phase = |phase: &String| {
        let named = described(&names).into_iter();
        let phase = phase.clone();
        named.map(move |figure| Described {
            name: format!("{phase}.{}", figure.name),
            ..figure
        })
    };
    let of_phases: Vec<Described> = names.phases.iter().flat_map(of_phase).collect();
    all.extend(of_phases);
    all.extend(meter::described());
    all
}

fn law_of(
    name: &str,
    fields: &Fields<'_>,
    scenario: &Scenario,
    figures: &[Described],
) -> Option<Law> {
    let family = fields.required("family", "say what it is about: family = \"shares\"");
    let because = fields.required("because", "say why a decent scheduler keeps its bounds");
    let machine = fields.text("machine").unwrap_or_else(|| MACHINE.to_owned());
    let cpus = fields.or("cpus", CPUS, |item| item.integer(1..=4096));
    let counted = fields.or("counted", false, Item::flag);
    let warmup = span(fields, "warmup", WARMUP);
    let time = span(fields, "time", TIME);
    let skipped = fields.table("skip").map(|table| skipped(&table));
    let broken_by = fields.text("broken_by");
    let bounds = bounds(fields, figures);
    fields.finish();
    if scenario.title().is_empty() {
        fields.report(
            "the law says nothing",
            "write above it what it says, in a sentence: title = \"...\"",
        );
    }
    Some(Law {
        name: name.to_owned(),
        family: family?.choice(Family::of_laws())?,
        says: scenario.title().to_owned(),
        because: because?.text()?.trim().to_owned(),
        machine,
        cpus: cpus? as u16,
        counted: counted?,
        warmup: warmup?,
        time: time?,
        skipped: skipped.unwrap_or_default(),
        broken_by,
        bounds,
        scenario: scenario.clone(),
    })
}

fn span(fields: &Fields<'_>, key: &'static str, usual: Duration) -> Option<Duration> {
    let Some(item) = fields.item(key) else {
        return Some(usual);
    };
    let span = item.duration()?;
    if span > LONGEST {
        item.report("this is too long", "write at most 120 s");
        return None;
    }
    Some(span)
}

fn skipped(table: &Fields<'_>) -> Vec<(WorldKind, String)> {
    let named = WorldKind::NAMES.into_iter().filter_map(|(key, world)| {
        let why = table.item(key)?.text()?;
        Some((world, why))
    });
    let named = named.collect();
    table.finish();
    named
}

fn bounds(fields: &Fields<'_>, figures: &[Described]) -> Vec<Bound> {
    let tables = fields.tables("bound");
    if tables.is_empty() {
        let help = "write [[law.bound]] with figure, and at_least or at_most";
        fields.report("the law has no bound, so nothing could break it", help);
    }
    let bounds = tables.iter().flat_map(|table| {
        let bounds = of_figure(table, figures);
        table.finish();
        bounds.unwrap_or_default()
    });
    bounds.collect()
}

/// The one or two bounds of a figure.
fn of_figure(table: &Fields<'_>, figures: &[Described]) -> Option<Vec<Bound>> {
    let help = "name one: warmq metrics FILE lists them";
    let figure = table.required("figure", help);
    let sides = [("at_least", Side::AtLeast), ("at_most", Side::AtMost)];
    let sides = sides.map(|(key, side)| table.item(key).map(|item| (item, side)));
    let since = table.table("since");
    let figure = &known(&figure?, figures)?;
    let given: Vec<_> = sides.into_iter().flatten().collect();
    if given.is_empty() {
        table.report("nothing bounds this figure", "write at_least or at_most");
    }
    let mut bounds = Vec::new();
    for (item, side) in &given {
        let limit = limit(item, figure, figures)?;
        if let Some(why) = nonsense(figure, *side, &limit) {
            item.report(why, "write a limit that a scheduler could break");
            return None;
        }
        let since = match &since {
            Some(since) => limits_since(since, given.len(), (figure, *side), figures)?,
            None => Vec::new(),
        };
        bounds.push(Bound {
            figure: figure.name.clone(),
            unit: figure.unit,
            side: *side,
            limit,
            since,
        });
    }
    let numbers: Vec<f64> = bounds.iter().filter_map(number).collect();
    if let [least, most] = numbers[..]
        && least > most
    {
        let what = "no value is at least this and at most that";
        table.report(what, "let at_least be below at_most");
        return None;
    }
    Some(bounds)
}

/// `{ "7.3" = 55 }`: the limits of the kernel's own scheduler by the release that they begin with.
fn limits_since(
    table: &Fields<'_>,
    sides: usize,
    (figure, side): (&Described, Side),
    figures: &[Described],
) -> Option<Vec<(Release, Limit)>> {
    if sides > 1 {
        let help = "write two bounds, one with at_least and one with at_most";
        table.report("which of the two limits begins there is not clear", help);
        return None;
    }
    let mut limits = Vec::new();
    if table.entries().next().is_none() {
        table.report("no release is named", "write one: since = { \"7.3\" = 55 }");
        return None;
    }
    for (entry, item) in table.entries() {
        let release = entry.key.parse::<Release>().ok();
        let Some(release) = release.filter(|release| release.patch.is_none()) else {
            item.report("this is no release of Linux", "write one: \"7.3\"");
            return None;
        };
        let limit = limit(&item, figure, figures)?;
        if let Some(why) = nonsense(figure, side, &limit) {
            item.report(why, "write a limit that a scheduler could break");
            return None;
        }
        limits.push((release, limit));
    }
    limits.sort_by_key(|(release, _)| *release);
    Some(limits)
}

fn number(bound: &Bound) -> Option<f64> {
    match bound.limit {
        Limit::Number(number) => Some(number),
        Limit::Of { .. } => None,
    }
}

/// Why nothing could break this bound, or nothing could keep it.
fn nonsense(figure: &Described, side: Side, limit: &Limit) -> Option<&'static str> {
    match (side, limit) {
        (Side::AtLeast, Limit::Number(number)) if *number <= 0.0 => {
            Some("every value is at least this")
        }
        (Side::AtMost, Limit::Number(number)) if *number < 0.0 => Some("no value is below 0"),
        (
            _,
            Limit::Of {
                part,
                figure: other,
            },
        ) if *other == figure.name && *part <= 1.0 => Some("a figure is compared with itself"),
        _ => None,
    }
}

/// `12`, `"8ms"` for a time, or `"60 % of OTHER"`.
fn limit(item: &Item<'_>, figure: &Described, figures: &[Described]) -> Option<Limit> {
    if let Some(text) = text_of(item)
        && let Some((part, other)) = text.split_once('%')
        && let Some(other) = other.trim_start().strip_prefix("of ")
    {
        let part = part
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number > 0.0);
        let Some(part) = part else {
            item.report(
                "this is no part",
                "write a number above 0: \"60 % of NAME\"",
            );
            return None;
        };
        let other = other.trim();
        let Some(found) = find(other, figures) else {
            let names = figures.iter().map(|figure| figure.name.as_str());
            item.unknown("no figure is called that", other, names);
            return None;
        };
        if found.unit != figure.unit {
            let what = format!("it is compared with another unit ({})", found.unit);
            item.report(what, "name a figure of the same unit");
            return None;
        }
        return Some(Limit::Of {
            part: part / 100.0,
            figure: found.name.clone(),
        });
    }
    if figure.unit == "us" && text_of(item).is_some() {
        let span = item.duration()?;
        return Some(Limit::Number(span.0 as f64 / 1e6));
    }
    item.number().map(Limit::Number)
}

fn text_of<'i>(item: &'i Item<'_>) -> Option<&'i str> {
    match &item.node.kind {
        NodeKind::Text(text) => Some(text),
        _ => None,
    }
}

/// The figure of a name. What a scheduler counts is known only when it is played.
fn find(name: &str, figures: &[Described]) -> Option<Described> {
    let mut known = figures.iter().filter(|figure| figure.name == name);
    let counter = || Described::of_scheduler(name);
    known.next().cloned().or_else(counter)
}

fn known(item: &Item<'_>, figures: &[Described]) -> Option<Described> {
    let name = item.text()?;
    let found = find(&name, figures);
    if found.is_none() {
        let names = figures.iter().map(|figure| figure.name.as_str());
        item.unknown("no figure is called that", &name, names);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(law: &str) -> Result<Law, String> {
        let text = format!(
            "title = \"a test\"\n[law]\n{law}\n\
             [task.hog]\ncount = 2\nbody = [{{ run = \"1ms\" }}]\n\
             [[phase]]\nname = \"storm\"\nat = \"1s\"\n"
        );
        Law::read("test", "test.toml", &text).map_err(|problems| problems.to_string())
    }

    fn bounded(bound: &str) -> Result<Law, String> {
        let head = "family = \"shares\"\nbecause = \"why\"";
        read(&format!("{head}\n[[law.bound]]\n{bound}"))
    }

    #[test]
    fn a_law_is_read_with_what_is_usual() {
        let text = "figure = \"storm.hog_delay_max\"\nat_most = \"8ms\"";
        let law = bounded(text).unwrap();
        assert_eq!((law.machine.as_str(), law.cpus), (MACHINE, 2));
        assert_eq!((law.warmup, law.time), (WARMUP, TIME));
        assert_eq!(law.broken_by, None);
        let bound = Bound {
            figure: "storm.hog_delay_max".to_owned(),
            unit: "us",
            side: Side::AtMost,
            limit: Limit::Number(8_000.0),
            since: Vec::new(),
        };
        assert_eq!(law.bounds, [bound]);
    }

    #[test]
    fn a_law_may_say_what_breaks_it() {
        let head = "family = \"shares\"\nbecause = \"why\"\nbroken_by = \"no-slices\"";
        let bound = "[[law.bound]]\nfigure = \"hog_share\"\nat_least = 40";
        let law = read(&format!("{head}\n{bound}")).unwrap();
        assert_eq!(law.broken_by.as_deref(), Some("no-slices"));
    }

    #[test]
    fn a_counter_of_a_scheduler_can_be_bounded() {
        let text = "figure = \"scheduler.granted_per_second\"\nat_most = 40";
        let bound = &bounded(text).unwrap().bounds[0];
        assert_eq!(
            (bound.figure.as_str(), bound.unit),
            ("scheduler.granted_per_second", "1/s")
        );
        let refused = bounded("figure = \"scheduler.granted\"\nat_most = 40").unwrap_err();
        assert!(refused.contains("no figure is called that"), "{refused}");
    }

    #[test]
    fn a_figure_may_have_two_sides_and_be_compared_with_another() {
        let law = bounded("figure = \"hog_share\"\nat_least = 40\nat_most = 60").unwrap();
        assert_eq!(law.bounds.len(), 2);
        let text = "figure = \"hog_share_least\"\nat_least = \"60 % of hog_share_most\"";
        let figure = "hog_share_most".to_owned();
        let part = 0.6;
        assert_eq!(
            bounded(text).unwrap().bounds[0].limit,
            Limit::Of { part, figure }
        );
        let ours = bounded("figure = \"idle_beside_waiting_max\"\nat_most = \"8ms\"");
        assert!(ours.is_ok());
    }

    #[test]
    fn a_limit_may_be_another_one_from_a_release_on() {
        let text = "figure = \"hog_share\"\nat_least = 80\nsince = { \"7.10\" = 20, \"7.3\" = 55 }";
        let bound = &bounded(text).unwrap().bounds[0];
        for (kernel, limit) in [
            (None, 80.0),
            (Some("7.2"), 80.0),
            (Some("7.3.4"), 55.0),
            (Some("7.9"), 55.0),
            (Some("8.0"), 20.0),
        ] {
            let kernel = kernel.and_then(Release::within);
            assert_eq!(bound.limit_in(kernel), &Limit::Number(limit), "{kernel:?}");
        }
        let asked = crate::shown::asked(bound);
        let expected =
            "hog_share at least 80.0 % (Linux since 7.3: 55.0 %) (Linux since 7.10: 20.0 %)";
        assert_eq!(asked, expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place_and_a_fix() {
        let table = [
            (
                "figure = \"hog_shares\"\nat_least = 1",
                "did you mean `hog_share`",
            ),
            ("figure = \"hog_share\"", "write at_least or at_most"),
            ("at_least = 4", "`figure` is missing"),
            (
                "figure = \"hog_share\"\nat_least = 0",
                "every value is at least this",
            ),
            (
                "figure = \"hog_share\"\nat_most = -1",
                "no value is below 0",
            ),
            (
                "figure = \"hog_share\"\nat_least = 60\nat_most = 50",
                "no value is at least",
            ),
            ("figure = \"hog_share\"\nat_most = \"8ms\"", "a number"),
            (
                "figure = \"hog_share\"\nat_least = 40\nsince = { \"7.3.4\" = 30 }",
                "this is no release of Linux",
            ),
            (
                "figure = \"hog_share\"\nat_least = 40\nsince = { \"7.3\" = 0 }",
                "every value is at least this",
            ),
            (
                "figure = \"hog_share\"\nat_least = 40\nat_most = 50\nsince = { \"7.3\" = 30 }",
                "write two bounds",
            ),
            (
                "figure = \"hog_share\"\nat_least = 40\nsince = {}",
                "no release is named",
            ),
            (
                "figure = \"hog_share\"\nat_least = \"90 % of hog_share\"",
                "with itself",
            ),
            (
                "figure = \"hog_share\"\nat_least = \"90 % of wait_max\"",
                "another unit (us)",
            ),
            (
                "figure = \"hog_share\"\nat_least = \"90 % of shar\"",
                "no figure is called that",
            ),
            (
                "figure = \"hog_share\"\nat_least = \"x % of hog_share_most\"",
                "no part",
            ),
            (
                "figure = \"hog_share\"\nat_least = 1\nmost = 2",
                "unknown key",
            ),
        ];
        for (bound, said) in table {
            let error = bounded(bound).map(|_| ()).unwrap_err();
            assert!(error.contains(said), "{bound}: {error}");
            assert!(error.contains("test.toml:"), "{error}");
        }
        let tables = [
            ("", "`family` is missing"),
            ("family = \"shares\"", "`because` is missing"),
            ("family = \"sharing\"\nbecause = \"why\"", "shares"),
            (
                "family = \"shares\"\nbecause = \"why\"",
                "nothing could break it",
            ),
            ("family = \"shares\"\nbecause = \"why\"\ncpus = 0", "cpus"),
            (
                "family = \"shares\"\nbecause = \"why\"\ntime = \"1000s\"",
                "too long",
            ),
            (
                "family = \"shares\"\nbecause = \"why\"\nskip = { moon = \"far\" }",
                "unknown key",
            ),
        ];
        for (law, said) in tables {
            let error = read(law).map(|_| ()).unwrap_err();
            assert!(error.contains(said), "{law}: {error}");
        }
    }

    #[test]
    fn the_schema_has_every_family() {
        let schema = include_str!("../../../scenarios/scenario.schema.json");
        for (name, _) in Family::of_laws() {
            assert!(schema.contains(&format!("\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn a_scenario_without_bounds_is_no_law() {
        let text = "title = \"t\"\n[task.hog]\nbody = [{ run = \"1ms\" }]\n";
        let error = Law::read("test", "test.toml", text).unwrap_err();
        assert!(error.to_string().contains("`law` is missing"), "{error}");
    }
}
