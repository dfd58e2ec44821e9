//! `SCX_KICK_WAIT`: which CPU waits, and until when.

use warmq_kernel::*;
use warmq_units::{CpuId, Duration};

use crate::stage::*;

const KICKS: &[u8] = include_bytes!("../programs/kicks.bpf.o");

/// `SCX_KICK_WAIT`.
const WAIT: i128 = 1 << 2;

/// Plays 50 ms of a hog on the first of two CPUs, and a task on the other that computes for 10 ms
/// and sleeps for 5 in turn. Ticks kick with these flags, a bit each, of either CPU.
fn played(series: &str, flags: i128, kicks: [i128; 2]) -> Played {
    let variables = [
        ("flags", flags),
        ("kicks_of_0", kicks[0]),
        ("kicks_of_1", kicks[1]),
    ];
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a").bound([CpuId(0)]))?;
        boot.task(called("b").bound([CpuId(1)]), |task: Task| async move {
            loop {
                task.compute_for(ms(10)).await;
                task.sleep(ms(5)).await;
            }
        })?;
        Ok(())
    };
    let loaded = load(KICKS, series, &variables);
    let played = Stage::with_costs(loaded, 2).play(50, &workload);
    assert_eq!(played.violation, None);
    played
}

fn spun(series: &str, flags: i128, kicks: [i128; 2]) -> [Duration; 2] {
    let played = played(series, flags, kicks);
    [played.spun[0], played.spun[1]]
}

/// In 6.18 a CPU waits in its tick until the other one, which takes an interrupt first, picks. In
/// 7.3 it first picks itself, so that less is left. (On this machine of 100 MHz an interrupt and a
/// pick take some 25 us.)
#[test]
fn who_kicks_waits_for_the_other_cpu_to_pick() {
    let first = [1, 0];
    let none = [Duration::ZERO; 2];
    assert_eq!(spun("6.18", 0, first), none);
    let [old, other] = spun("6.18", WAIT, first);
    let [new, _] = spun("7.3", WAIT, first);
    assert_eq!(other, Duration::ZERO);
    assert!(new < old && old < Duration::from_us(40), "{old:?} {new:?}");
    assert!(old > Duration::from_us(10), "{old:?}");
}

/// A CPU that idles runs no task of sched_ext. (The fourth tick, at 14 ms, comes while it idles.)
#[test]
fn nobody_waits_for_a_cpu_that_idles() {
    for series in ["6.18", "7.3"] {
        assert_eq!(spun(series, WAIT, [1 << 3, 0]), [Duration::ZERO; 2]);
    }
}
