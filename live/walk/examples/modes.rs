//! Fragments and the chat by hand: `cargo run --release -p warmq-bench --example modes`.
//! The chat's server is this program again, started with the word `server`.

use warmq_bench::chat::{ChatSettings, ServerProgram, measure_chat, serve};
use warmq_bench::compare::Compared;
use warmq_bench::fragments::{FragmentsSettings, measure_fragments};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).is_some_and(|word| word == "server") {
        return Ok(serve(std::io::stdin(), &mut std::io::stdout())?);
    }
    let report = measure_fragments(&FragmentsSettings::default(), &mut |_| ())?;
    println!("{:?}, others had {:?}", report.host, report.others_share);
    for row in report.rows {
        let case = format!("{:4} threads, size {:6}", row.threads, row.size);
        println!(
            "{case}, {}, together {:.0} %",
            shown(&row.compared),
            100.0 * row.together.median
        );
    }
    let server = ServerProgram {
        program: std::env::current_exe()?,
        arguments: vec!["server".into()],
    };
    let report = measure_chat(&ChatSettings::default(), &server, &mut |_| ())?;
    println!("others had {:?}", report.others_share);
    for row in report.rows {
        let p99 = row.latency_us.p99.median / 1e3;
        println!(
            "{:4} rooms, {}, p99 {p99:.1} ms",
            row.rooms,
            shown(&row.compared)
        );
    }
    Ok(())
}

fn shown(compared: &Compared) -> String {
    let elapsed = compared.summary.elapsed_s;
    let against = compared.against_plain.as_ref().map_or(String::new(), |it| {
        let (low, high) = it.interval;
        format!(
            "{:.2} ({low:.2} to {high:.2}) {:?}",
            it.speed.median, it.verdict
        )
    });
    let times = format!(
        "{:.3} s ({:.3} to {:.3})",
        elapsed.median, elapsed.min, elapsed.max
    );
    format!("{:6} {times} {against:30}", compared.mode)
}
