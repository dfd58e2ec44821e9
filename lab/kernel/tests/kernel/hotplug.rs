//! CPUs that go offline and come back.

use warmq_kernel::*;
use warmq_trace::Record;
use warmq_units::{Bytes, CpuId, Duration, Instant};

use crate::support::*;

fn hogs(boot: &mut Boot<'_>, tasks: u32) -> Started {
    for _ in 0..tasks {
        boot.task(called("hog"), |task: Task| async move {
            loop {
                task.compute(us(3_000)).await;
                task.sleep(Duration::from_ms(1)).await;
            }
        })?;
    }
    Ok(())
}

/// The CPUs that ran a task between two points in time, in ms.
fn used(story: &Story, from: u64, to: u64) -> Vec<CpuId> {
    let at = |ms| Instant::START + Duration::from_ms(ms);
    let switches = story
        .records()
        .iter()
        .filter_map(|(when, record)| match record {
            Record::Switch {
                cpu, next: Some(_), ..
            } if (at(from)..at(to)).contains(when) => Some(*cpu),
            _ => None,
        });
    let mut cpus: Vec<CpuId> = switches.collect();
    cpus.sort();
    cpus.dedup();
    cpus
}

#[test]
fn nobody_runs_on_a_cpu_that_is_offline() {
    for nohz in [false, true] {
        let mut on = stage(4).costs(some_costs()).until_ms(300);
        on.settings.nohz = nohz;
        let story = on.plays(|boot: &mut Boot<'_>| -> Started {
            hogs(boot, 9)?;
            boot.task(called("admin"), |task: Task| async move {
                task.sleep(Duration::from_ms(100)).await;
                assert!(task.change(Change::Online(cpu(2), false)).await);
                assert!(
                    !task.change(Change::Online(cpu(2), false)).await,
                    "it is online already"
                );
                assert!(
                    !task.change(Change::Online(cpu(9), false)).await,
                    "there is no such CPU"
                );
                task.sleep(Duration::from_ms(100)).await;
                assert!(task.change(Change::Online(cpu(2), true)).await);
                task.sleep(Duration::from_s(1)).await;
            })?;
            Ok(())
        });
        assert!(used(&story, 0, 90).contains(&cpu(2)));
        assert!(!used(&story, 125, 195).contains(&cpu(2)), "nohz: {nohz}");
        assert!(used(&story, 225, 300).contains(&cpu(2)));
    }
}

#[test]
fn a_task_bound_to_a_cpu_that_goes_may_run_anywhere() {
    let story = stage(2)
        .until_ms(100)
        .plays(|boot: &mut Boot<'_>| -> Started {
            boot.task(called("bound").bound([cpu(1)]), |task: Task| async move {
                task.compute(us(50_000)).await;
            })?;
            boot.task(called("admin").bound([cpu(0)]), |task: Task| async move {
                task.sleep(Duration::from_ms(10)).await;
                assert!(task.change(Change::Online(cpu(1), false)).await);
                assert!(
                    !task.change(Change::Online(cpu(0), false)).await,
                    "the last one stays"
                );
            })?;
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
    assert!(story.spent(0, Mode::User) >= Duration::from_ms(39));
}

#[test]
fn packets_and_timers_of_a_cpu_that_goes_are_served_elsewhere() {
    let story = stage(2)
        .costs(costs(&[("network_packet", 10_000)]))
        .until_ms(400)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let nic = boot.nic(1_000_000_000, Duration::ZERO);
            let socket = boot.datagram_socket(Bytes::from_kb(64))?;
            boot.task(called("receiver"), move |task: Task| async move {
                for _ in 0..200 {
                    task.receive_datagram(socket).await;
                }
            })?;
            boot.task(called("admin").bound([cpu(1)]), |task: Task| async move {
                task.sleep(Duration::from_ms(20)).await;
                task.change(Change::Online(cpu(1), false)).await;
                task.sleep(Duration::from_ms(200)).await;
            })?;
            boot.remote(move |peer| async move {
                for _ in 0..200 {
                    peer.send_datagram(socket, nic, Bytes(64)).await;
                    peer.pause(Duration::from_us(300)).await;
                }
            });
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
}
