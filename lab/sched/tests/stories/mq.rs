//! MQ: a queue for each CPU.

use warmq_kernel::*;

use crate::stage::*;

#[test]
fn each_cpu_works_through_its_own_queue() {
    let lines = stage(2).chart("mq", 24, |boot: &mut Boot<'_>| -> Started {
        for name in ["A", "B", "C", "D"] {
            hog(boot, called(name))?;
        }
        Ok(())
    });
    for (line, own) in lines.iter().zip(["AC", "BD"]) {
        assert!(line.chars().all(|letter| own.contains(letter)), "{lines:?}");
    }
}

#[test]
fn a_cpu_that_runs_dry_takes_what_waits_elsewhere() {
    let lines = stage(2).chart("mq", 12, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        boot.task(called("B"), |task: Task| async move {
            task.compute(ticks(4)).await;
        })?;
        hog(boot, called("C"))?;
        Ok(())
    });
    assert_eq!(lines, ["CCCCCCCCCCCC", "BBBBAAAAAAAA"]);
}

#[test]
fn a_cpu_with_enough_of_its_own_takes_nothing() {
    // On CPU 0 of two tasks one always waits; CPU 1's own, with 15 for having run there, is better
    // than what CPU 0 publishes without those.
    let lines = stage(2).chart("mq", 24, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").nice(10))?;
        hog(boot, called("B"))?;
        hog(boot, called("C").nice(10))?;
        Ok(())
    });
    assert_eq!(lines[1], "BBBBBBBBBBBBBBBBBBBBBBBB", "{lines:?}");
    assert!(lines[0].contains("ACCC"), "{lines:?}");
}

#[test]
fn the_woken_goes_home_if_home_is_idle() {
    let lines = stage(3).chart("mq", 12, |boot: &mut Boot<'_>| -> Started {
        for (name, asleep) in [("A", 10), ("B", 10), ("C", 20)] {
            boot.task(called(name), move |task: Task| async move {
                loop {
                    task.compute(ticks(1)).await;
                    task.sleep(ms(asleep)).await;
                }
            })?;
        }
        Ok(())
    });
    assert_eq!(lines, ["A.A.A.A.A.A.", "B.B.B.B.B.B.", "C..C..C..C.."]);
}
