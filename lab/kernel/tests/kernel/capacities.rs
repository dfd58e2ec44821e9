//! CPUs of unlike capacity.

use warmq_kernel::*;
use warmq_units::{Bytes, CpuSet};

use crate::support::*;

/// Two CPUs, of which the second has half the capacity of the first.
fn big_and_little() -> Stage {
    let mut on = stage(2);
    on.machine.capacities = vec![1_024, 512];
    on
}

#[test]
fn half_the_capacity_takes_twice_as_long() {
    let story = big_and_little().plays(|boot: &mut Boot<'_>| bound_hogs(boot, 2, 30));
    assert_eq!((story.exit_us(0), story.exit_us(1)), (30_000, 60_000));
}

/// What is interrupted goes on where it was, wherever it goes on.
#[test]
fn work_that_moves_goes_on_at_the_speed_of_its_new_cpu() {
    let story = big_and_little().plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("moves").bound([cpu(1)]), |task: Task| async move {
            task.compute(us(10_000)).await;
            task.change(Change::Affinity(task.id(), CpuSet::from_iter([cpu(0)])))
                .await;
            task.compute(us(10_000)).await;
        })?;
        Ok(())
    });
    assert_eq!(story.exit_us(0), 30_000);
}

#[test]
fn siblings_of_a_slow_core_slow_each_other_down_as_well() {
    let mut on = big_and_little();
    on.machine.smt_speed = 500;
    on.machine.capacities = vec![512, 512];
    on.machine.cpus[1].core = 0;
    let story = on.plays(|boot: &mut Boot<'_>| bound_hogs(boot, 2, 10));
    assert_eq!((story.exit_us(0), story.exit_us(1)), (40_000, 40_000));
}

#[test]
fn kernel_paths_take_longer_too() {
    let of = |at: u16| {
        let mut on = big_and_little();
        on.costs = costs(&[("system_call", 1_000)]);
        let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
            boot.task(called("caller").bound([cpu(at)]), |task: Task| async move {
                for _ in 0..1_000 {
                    task.yield_now().await;
                }
            })?;
            Ok(())
        });
        story.exit_us(0)
    };
    assert_eq!((of(0), of(1)), (1_000, 2_000));
}

/// Memory is as far away from a slow CPU as from a fast one.
#[test]
fn misses_take_what_they_take() {
    let of = |at: u16| {
        let story = big_and_little()
            .with_caches()
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let region = boot.region(Bytes::from_kb(64))?;
                boot.task(
                    called("reader").bound([cpu(at)]),
                    move |task: Task| async move {
                        task.touch(Touch::read(region, 0, 2_048)).await;
                    },
                )?;
                Ok(())
            });
        story.exit_us(0)
    };
    let (big, little) = (of(0), of(1));
    assert!(
        big > 100 && little.abs_diff(big) <= 1,
        "{big} us, {little} us"
    );
}
