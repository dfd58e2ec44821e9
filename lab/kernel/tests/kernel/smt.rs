//! CPUs that share a core.

use warmq_kernel::*;
use warmq_units::Duration;

use crate::support::*;

/// Two CPUs of one core at 600 thousandths of their speed while both are busy.
fn siblings() -> Stage {
    let mut on = stage(2);
    on.machine.smt_speed = 600;
    for place in &mut on.machine.cpus {
        place.core = 0;
    }
    on
}

#[test]
fn siblings_slow_each_other_down_while_both_are_busy() {
    let story = siblings().plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("long").bound([cpu(0)]), |task: Task| async move {
            task.compute(us(90_000)).await;
        })?;
        boot.task(called("short").bound([cpu(1)]), |task: Task| async move {
            task.sleep(Duration::from_ms(30)).await;
            task.compute(us(30_000)).await;
        })?;
        Ok(())
    });
    // 30 ms alone; then 50 ms for 30 ms of work each; the last 30 ms alone again. A tick takes no
    // time here, but each interruption rounds by a picosecond.
    assert_eq!(story.exit_us(1), 80_000);
    assert!(
        (109_999..=110_001).contains(&story.exit_us(0)),
        "{}",
        story.exit_us(0)
    );
}

#[test]
fn cores_of_their_own_do_not_slow_anybody_down() {
    let mut on = siblings();
    on.machine.cpus[1].core = 1;
    let story = on.plays(|boot: &mut Boot<'_>| bound_hogs(boot, 2, 50));
    assert_eq!((story.exit_us(0), story.exit_us(1)), (50_000, 50_000));
}
