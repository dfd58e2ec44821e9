//! scratch
use warmq_bench::simplex::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let kpps = a[1].split(',').map(|x| x.parse().unwrap()).collect();
    let s = SimplexSettings {
        kpps,
        repetitions: a[2].parse().unwrap(),
        link: a.get(3).map_or(LinkKind::Loopback, |t| t.parse().unwrap()),
        policies: a.get(4).map_or(vec![Policy::Other, Policy::Batch], |t| {
            t.split(',').map(|x| x.parse().unwrap()).collect()
        }),
        ..SimplexSettings::default()
    };
    let r = compare(&s, &mut |_| {}).unwrap();
    println!("{:?}", r.facts);
    for row in &r.rows {
        for p in &row.repetitions {
            println!(
                "{:4} {} work {:.3} cpu {:.3} sw/s {:.0} | sent {:.1} late {} rst {} | rcpu {:.3} wake {:.0} pre {:.0} lost {} gaps {} drop {} | {:?}",
                row.kpps,
                row.policy,
                p.simplex.work_share,
                p.simplex.cpu_share,
                p.switches_per_s(),
                p.sender.kpps().unwrap_or(0.0),
                p.sender.late,
                p.sender.restarts,
                p.receivers.cpu_share,
                p.receivers.wakeups_per_s,
                p.receivers.preemptions_per_s,
                p.receivers.lost,
                p.receivers.gaps,
                p.receivers.dropped,
                p.receivers.latency
            );
        }
    }
}
