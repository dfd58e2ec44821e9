mod bpf_skel;
use std::mem::MaybeUninit;
use anyhow::Context;
use bpf_skel::*;
use libbpf_rs::OpenObject;
use scx_utils::{UserExitInfo, scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};
fn main() -> anyhow::Result<()> {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let s2 = stop.clone();
    ctrlc::set_handler(move || s2.store(true, std::sync::atomic::Ordering::Relaxed))?;
    let topo = scx_utils::Topology::new()?;
    let mut object = MaybeUninit::<OpenObject>::uninit();
    let mut builder = BpfSkelBuilder::default();
    builder.obj_builder.debug(std::env::args().any(|a| a == "-v"));
    let mut skel = scx_ops_open!(builder, &mut object, warmq_ops, None::<libbpf_rs::libbpf_sys::bpf_object_open_opts>.as_ref().map(|x: &libbpf_rs::libbpf_sys::bpf_object_open_opts| x.clone()))?;
    {
        let ro = skel.maps.rodata_data.as_mut().context("rodata")?;
        ro.nr_cpus = topo.all_cpus.len() as u32;
        ro.nr_domains = topo.all_llcs.len() as u32;
        ro.nr_places = ro.nr_domains;
        for (id, cpu) in &topo.all_cpus { ro.cpu_domain[*id] = cpu.llc_id as u32; ro.cpu_sibling[*id] = *id as u32; }
    }
    {
        let policy = &mut skel.maps.bss_data.as_mut().context("bss")?.policy;
        policy.period = 20000000; policy.slice_max = 4000000; policy.slice_min = 500000;
        policy.credit = 2000000; policy.limit = 40000000; policy.alpha=1000; policy.preempt_interval=1000000;
        policy.batch_budget = 8000000; policy.imbalance = 25; policy.patience = 20000000;
    }
    let mut skel = scx_ops_load!(skel, warmq_ops, uei)?;
    let link = scx_ops_attach!(skel, warmq_ops)?;
    println!("loaded");
    let mut n = 0;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) && !uei_exited!(&skel, uei) {
        std::thread::sleep(std::time::Duration::from_millis(200));
        n += 1;
        if n % 5 == 0 {
          let bss = skel.maps.bss_data.as_ref().unwrap();
          let sum: Vec<u64> = (0..29).map(|i| bss.cpus.iter().map(|c| c.counters[i]).sum()).collect();
          println!("{sum:?}");
        }
    }
    drop(link);
    let r: UserExitInfo = uei_report!(&skel, uei)?;
    println!("exit {:?}", r.should_restart());
    Ok(())
}
