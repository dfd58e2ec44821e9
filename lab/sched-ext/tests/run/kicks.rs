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
    let played = play(load(KICKS, series, &variables), 2, 50, &workload);
    assert_eq!(played.violation, None);
    played
}

fn spun(series: &str, flags: i128, kicks: [i128; 2]) -> [Duration; 2] {
    let played = played(series, flags, kicks);
    [played.spun[0], played.spun[1]]
}

/// In 6.18 a CPU waits from its tick at 2 ms until the other one leaves sched_ext at 10 ms, and no
/// tick of its own comes in. In 7.3 the other one picks at once, where nothing costs anything.
#[test]
fn who_kicks_waits_for_the_other_cpu_to_switch() {
    let (none, first) = ([Duration::ZERO; 2], [1, 0]);
    assert_eq!(spun("6.18", 0, first), none);
    assert_eq!(spun("6.18", WAIT, first), [ms(8), Duration::ZERO]);
    assert_eq!(spun("7.3", WAIT, first), none);
}

/// A CPU that idles was not in sched_ext: 6.18 waits all the same, until it has been there and has
/// left again, and 7.3 does not. (The fourth tick, at 14 ms, comes while the other CPU idles.)
#[test]
fn a_cpu_that_idles_is_waited_for_up_to_6_18() {
    let fourth = [1 << 3, 0];
    assert_eq!(spun("6.18", WAIT, fourth), [ms(11), Duration::ZERO]);
    assert_eq!(spun("7.3", WAIT, fourth), [Duration::ZERO; 2]);
}

/// Two that wait for each other do so for ever in 6.18. In 7.3 one that waits counts as one that
/// has switched.
#[test]
fn two_that_wait_for_each_other_hang_6_18() {
    let both = [1, 1];
    let said = said(&played("6.18", WAIT, both));
    assert!(said.contains("wait for each other"), "{said}");
    assert_eq!(spun("7.3", WAIT, both), [Duration::ZERO; 2]);
}
