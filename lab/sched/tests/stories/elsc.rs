//! ELSC and PLS: tables of lists instead of one walk over everybody.

use warmq_kernel::*;
use warmq_units::CpuSet;

use crate::stage::*;

/// X (6 ticks left of 8, nice -8, last on CPU 1) and Y (2 left of 6, nice 0, last on CPU 0) wait
/// when F leaves CPU 0. Static goodness is 34 and 22; having run there is worth 15, so that for who
/// looks at everybody Y is the better one until its slice is used up. But X is in a higher list.
fn after_f(name: &str) -> Vec<String> {
    stage(2).chart(name, 8, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("Y").bound([cpu(0)]))?;
        boot.task(
            called("X").nice(-8).bound([cpu(1)]),
            |task: Task| async move {
                task.change(Change::Affinity(
                    task.id(),
                    CpuSet::from_iter([cpu(0), cpu(1)]),
                ))
                .await;
                loop {
                    task.compute(ticks(1)).await;
                }
            },
        )?;
        sleeper(
            boot,
            called("F").policy(Policy::Fifo(1)).bound([cpu(0)]),
            4,
            1,
        )?;
        sleeper(
            boot,
            called("H").policy(Policy::Fifo(1)).bound([cpu(1)]),
            2,
            90,
        )?;
        Ok(())
    })
}

#[test]
fn elsc_looks_at_the_topmost_list_only() {
    assert_eq!(after_f("elsc"), ["YYYYFXXX", "XXHHHHHH"]);
}

#[test]
fn pls_and_vanilla_see_who_ran_here() {
    for name in ["linux24", "pls"] {
        assert_eq!(after_f(name), ["YYYYFYYX", "XXHHHHHH"], "{name}");
    }
}

#[test]
fn pls_visits_fewer_than_vanilla_where_priorities_differ() {
    let visits = |name| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for nice in 0..20 {
                hog(boot, called("N").nice(nice - 10))?;
            }
            sleeper(boot, called("S").nice(-20), 1, 1)?;
            Ok(())
        };
        let (_, kernel) = stage(1).plays(scheduler(name, &[]), 2_000, workload);
        (kernel.walks().walks, kernel.walks().visits)
    };
    let (vanilla, pls, elsc) = (visits("linux24"), visits("pls"), visits("elsc"));
    assert!(pls.1 * 2 < vanilla.1, "pls {pls:?}, vanilla {vanilla:?}");
    assert!(elsc.1 < vanilla.1, "elsc {elsc:?}, vanilla {vanilla:?}");
}
