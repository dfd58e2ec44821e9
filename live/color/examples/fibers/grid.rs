//! The grid: fibers, sizes of stacks, small and huge pages.

use std::path::Path;
use std::time::Duration;

use warmq_color::{Options, Pool, machine};

use crate::ring::Ring;

const HELP: &str = "\
Fibers that yield in turn, on colored stacks and on plain ones: ns a switch.

  --fibers LIST   how many fibers [64,256,1024,4096,16000]
  --stack LIST    KB a stack [16,64,256]
  --colors LIST   numbers of colors beside plain; auto: as the library chooses [auto]
  --lines N       lines of its frame that a fiber touches [2]
  --rounds N      measurements of each, in alternation; the median is shown [9]
  --ms N          how long a measurement takes [100]
  --huge          huge pages, without guard pages
  --json          a line of JSON for each row

Level 1 misses: the share of hot lines that equation 1's sets predict to miss, plain and colored.";

/// What was asked for.
struct Asked {
    fibers: Vec<usize>,
    stacks: Vec<usize>,
    colors: Vec<Option<u64>>,
    lines: usize,
    rounds: usize,
    time: Duration,
    huge: bool,
    json: bool,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
        let mut asked = Asked {
            fibers: vec![64, 256, 1024, 4096, 16_000],
            stacks: vec![16, 64, 256],
            colors: vec![None],
            lines: 2,
            rounds: 9,
            time: Duration::from_millis(100),
            huge: false,
            json: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or(format!("{word} needs a value; --help lists them"))
            };
            match word.as_str() {
                "--fibers" => asked.fibers = list(&value()?)?,
                "--stack" => asked.stacks = list(&value()?)?,
                "--colors" => asked.colors = colors(&value()?)?,
                "--lines" => asked.lines = number(&value()?)?,
                "--rounds" => asked.rounds = number(&value()?)?,
                "--ms" => asked.time = Duration::from_millis(number(&value()?)? as u64),
                "--huge" => asked.huge = true,
                "--json" => asked.json = true,
                _ => return Err(HELP.to_owned()),
            }
        }
        Ok(asked)
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("{text}: write a whole number from 1 on"))
}

fn list(text: &str) -> Result<Vec<usize>, String> {
    text.split(',').map(number).collect()
}

fn colors(text: &str) -> Result<Vec<Option<u64>>, String> {
    let one = |word| match word {
        "auto" => Ok(None),
        _ => number(word).map(|colors| Some(colors as u64)),
    };
    text.split(',').map(one).collect()
}

pub fn main() -> Result<(), String> {
    let asked = Asked::read(std::env::args().skip(1))?;
    if !asked.json {
        println!(
            "stack KB  fibers  colors  level 1 misses  plain ns  colored ns  plain/colored (quartiles)"
        );
    }
    for stack in &asked.stacks {
        for fibers in &asked.fibers {
            for colors in &asked.colors {
                row(&asked, *stack, *fibers, *colors)?;
            }
        }
    }
    Ok(())
}

fn options(asked: &Asked, stack: usize) -> Options {
    let options = Pool::of_size(stack << 10).hot_lines(hot_lines(asked));
    if asked.huge {
        // SAFETY: the fibers of this program use less than 2 KB of stack.
        #[allow(unsafe_code)]
        unsafe {
            options.huge_without_guards()
        }
    } else {
        options
    }
}

/// How often plain and colored fibers take turns on the same stacks.
const TURNS: u32 = 8;

/// What came out, plain and colored.
#[derive(Default)]
struct Measured {
    ns: [Vec<f64>; 2],
    ratios: Vec<f64>,
    /// The predicted share of hot lines that miss in level 1.
    misses: [f64; 2],
}

/// Fibers on plain and on colored stacks in alternation, a few ms each; in each round on stacks
/// that are mapped anew, as which pages they get is a part of what is measured.
fn measure(asked: &Asked, fibers: usize, pools: &[Options; 2]) -> Result<Measured, String> {
    let ring = |options: &Options| {
        let pool = options.clone().pool().map_err(|error| error.to_string())?;
        Ring::new(&pool, fibers, asked.lines)
    };
    let level_1 = machine::caches(Path::new("/"))[0];
    let mut measured = Measured::default();
    for round in 0..asked.rounds {
        // Who is mapped first changes, too.
        let first = round % 2;
        let mut rings = [ring(&pools[first])?, ring(&pools[1 - first])?];
        rings.rotate_left(first);
        let mut best = [f64::INFINITY; 2];
        for _ in 0..TURNS {
            for (ring, best) in rings.iter_mut().zip(&mut best) {
                *best = best.min(ring.ns_per_switch(asked.time / TURNS));
            }
        }
        measured.ratios.push(best[0] / best[1]);
        for (times, best) in measured.ns.iter_mut().zip(best) {
            times.push(best);
        }
        let hot = hot_lines(asked);
        measured.misses = rings.map(|ring| ring.predicted_misses(level_1, hot));
    }
    Ok(measured)
}

/// Lines of a stack that are touched: those of the frame, and one by the switch itself.
fn hot_lines(asked: &Asked) -> u64 {
    asked.lines as u64 + 1
}

fn row(asked: &Asked, stack: usize, fibers: usize, colors: Option<u64>) -> Result<(), String> {
    let plain = options(asked, stack).colors(1);
    let colored = match colors {
        Some(colors) => options(asked, stack).colors(colors),
        None => options(asked, stack).fibers(fibers as u64),
    };
    let pool = colored.clone().pool().map_err(|error| error.to_string())?;
    let colors = pool.coloring().colors();
    let mut measured = measure(asked, fibers, &[plain, colored])?;
    let [plain, colored] = measured.ns.each_mut().map(|times| quantile(times, 2));
    let ratios = [1, 2, 3].map(|quarter| quantile(&mut measured.ratios, quarter));
    let ([low, ratio, high], [missed, misses]) = (ratios, measured.misses);
    if asked.json {
        println!(
            "{{\"stack_kb\":{stack},\"fibers\":{fibers},\"colors\":{colors},\"lines\":{},\"huge\":{},\
             \"plain_misses\":{missed:.3},\"colored_misses\":{misses:.3},\
             \"plain_ns\":{plain:.2},\"colored_ns\":{colored:.2},\"ratio\":{ratio:.3},\
             \"low\":{low:.3},\"high\":{high:.3}}}",
            asked.lines, asked.huge
        );
    } else {
        println!(
            "{stack:>8}  {fibers:>6}  {colors:>6}  {:>5.0} % {:>5.0} %  {plain:>8.1}  {colored:>10.1}  \
             {ratio:>6.2} ({low:.2} to {high:.2})",
            missed * 100.0,
            misses * 100.0,
        );
    }
    Ok(())
}

/// The value a quarter, half or three quarters up; of no values, not a number.
fn quantile(values: &mut [f64], quarter: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = values.len().saturating_sub(1) * quarter / 4;
    values.get(index).copied().unwrap_or(f64::NAN)
}
