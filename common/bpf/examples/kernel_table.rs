//! Makes the table of a kernel (common/bpf/src/kernel.rs) of its BTF.
//!
//! `kernel_table VERSION BTF [CONFIG]` writes it to standard output; scripts/kernel-table.sh takes
//! both from a guest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use warmq_bpf::{Btf, Composite, Kind};

/// Structs that sched_ext programs read, and what they may be given. What these contain comes, too.
const ROOTS: &str = "task_struct rq user_namespace cgroup kernfs_node css_set cgroup_subsys_state cred signal_struct \
    task_group pid upid pid_namespace mempolicy cpufreq_policy cpuhp_cpu_state tick_device \
    clock_event_device cpumask bpf_perf_event_value sched_ext_ops sched_ext_entity scx_exit_info \
    scx_init_task_args scx_exit_task_args scx_cgroup_init_args scx_cpu_acquire_args \
    scx_cpu_release_args scx_dump_ctx scx_event_stats scx_dispatch_q scx_dsq_list_node \
    scx_bpf_dsq_insert_vtime_args scx_bpf_select_cpu_and_args bpf_iter_num bpf_iter_scx_dsq \
    bpf_iter_css bpf_iter_task bpf_timer bpf_spin_lock bpf_cpumask kernel_cpustat kernel_stat \
    psi_group_cpu sugov_cpu vm_event_state file inode dentry trace_event_raw_sys_enter \
    trace_event_raw_sys_exit pt_regs rusage pcpu_hot sched_group_capacity sched_domain \
    sched_domain_shared mm_struct css_task_iter bpf_iter_css_task bpf_rb_root bpf_rb_node \
    bpf_list_head bpf_list_node bpf_refcount bpf_dynptr bpf_wq cgroup_root cpu_topology pelt_cfs";

/// Structs that are large and that nobody asks for: they have a size and no fields.
const NO_FIELDS: &str = "mm_struct file inode dentry device wait_queue_head posix_cputimers \
    thread_struct hrtimer_cpu_base xarray kobject fpu ww_acquire_ctx perf_event_context";

/// Enums of these names, and all whose names begin with `scx_`.
const ENUMS: &str = "bpf_func_id bpf_map_type cgroup_subsys_id cpuhp_state hk_type psi_states cpu_usage_stat \
    vm_event_item bpf_arena_flags cgroup_bpf_attach_type migration_type uclamp_id";

/// What each object asks for that is not in every kernel, and is not in the tables.
const OPTIONS: &str = "CONFIG_HZ CONFIG_NO_HZ_IDLE CONFIG_NR_CPUS CONFIG_PREEMPT_RCU CONFIG_PREEMPT_RT \
    CONFIG_X86_64 CONFIG_LOCALVERSION CONFIG_CC_VERSION_TEXT CONFIG_EXT_GROUP_SCHED CONFIG_NUMA";

struct Maker<'b> {
    btf: &'b Btf,
    by_name: BTreeMap<&'b str, u32>,
    left: Vec<(String, u32)>,
    done: BTreeSet<String>,
}

impl Maker<'_> {
    /// The words of a field's type.
    fn words(&mut self, id: u32, path: &str) -> String {
        let id_name = self.btf.get(id).name.clone();
        let at = self.btf.resolve(id);
        match &self.btf.get(at).kind {
            Kind::Array(of, count) => format!("{count} {}", self.words(*of, path)),
            Kind::Int { size, signed: true } => format!("i{size}"),
            Kind::Int { size, .. } | Kind::Enum { size, .. } | Kind::Float(size) => {
                format!("u{size}")
            }
            Kind::Struct(_) | Kind::Union(_) => {
                let own = &self.btf.get(at).name;
                let name = [own.as_str(), id_name.as_str(), path]
                    .into_iter()
                    .find(|name| !name.is_empty());
                let name = name.unwrap_or(path).to_owned();
                self.left.push((name.clone(), at));
                name
            }
            _ => "p".to_owned(),
        }
    }

    fn fields(&mut self, of: &str, composite: &Composite, base: u32, lines: &mut Vec<String>) {
        for member in &composite.members {
            let bits = base + member.bits;
            if !member.name.is_empty() {
                let words = self.words(member.of, &format!("{of}.{}", member.name));
                lines.push(format!(" {} {} {words}", member.name, bits / 8));
            } else if let Some(inner) = self.btf.composite(member.of).cloned() {
                self.fields(of, &inner, bits, lines);
            }
        }
    }

    fn structs(&mut self, out: &mut Vec<String>) {
        while let Some((name, id)) = self.left.pop() {
            let Some(composite) = self.btf.composite(id).cloned() else {
                continue;
            };
            if !self.done.insert(name.clone()) {
                continue;
            }
            out.push(format!("struct {name} {}", composite.size));
            if !NO_FIELDS.split_whitespace().any(|without| without == name) {
                self.fields(&name, &composite, 0, out);
            }
        }
    }
}

fn enums(btf: &Btf, out: &mut Vec<String>) {
    let asked = |name: &str| {
        name.starts_with("scx_") || ENUMS.split_whitespace().any(|wanted| wanted == name)
    };
    let mut found = BTreeMap::new();
    for one in &btf.types {
        if let Kind::Enum { values, .. } = &one.kind
            && (asked(&one.name) || values.iter().any(|(name, _)| name.starts_with("SCX_")))
        {
            let name = if one.name.is_empty() {
                "(anon)"
            } else {
                &one.name
            };
            let lines: &mut BTreeSet<String> = found.entry(name).or_default();
            lines.extend(
                values
                    .iter()
                    .map(|(name, value)| format!(" {name} {value}")),
            );
        }
    }
    for (name, lines) in found {
        out.push(format!("enum {name}"));
        out.extend(lines);
    }
}

fn kfuncs(btf: &Btf, out: &mut Vec<String>) {
    let mut found = BTreeSet::new();
    for tag in btf.types.iter().filter(|one| one.name == "bpf_kfunc") {
        let Kind::DeclTag(of) = tag.kind else {
            continue;
        };
        let function = btf.get(of);
        if let Kind::Function(prototype, _) = function.kind {
            let signature = btf.signature(prototype).unwrap_or_default();
            found.insert(format!("kfunc {} {signature}", function.name));
        }
    }
    out.extend(found);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [version, path, config @ ..] = &args[..] else {
        eprintln!("usage: kernel_table VERSION BTF [CONFIG]");
        std::process::exit(2);
    };
    let bytes = std::fs::read(path).expect("a file with BTF");
    let btf = Btf::read(&bytes).expect("BTF");
    let config = config
        .first()
        .map(|path| std::fs::read_to_string(path).expect("a configuration"));
    let mut out = vec![format!("kernel {version}")];
    for line in config.iter().flat_map(|text| text.lines()) {
        let unset = line
            .strip_prefix("# ")
            .and_then(|line| line.strip_suffix(" is not set"));
        let option = line.split_once('=').or(unset.map(|name| (name, "n")));
        let option = option.filter(|(name, _)| OPTIONS.split_whitespace().any(|one| one == *name));
        out.extend(option.map(|(name, value)| {
            format!(
                "config {name} {}",
                value.trim_matches('"').replace(' ', "_")
            )
        }));
    }
    kfuncs(&btf, &mut out);
    let variables = btf.types.iter().filter_map(|one| match one.kind {
        Kind::Variable(of) => Some(format!("variable {} {}", one.name, btf.size(of))),
        _ => None,
    });
    out.extend(variables.collect::<BTreeSet<_>>());
    enums(&btf, &mut out);
    let composite = (0..).zip(&btf.types).filter(|(_, one)| {
        matches!(one.kind, Kind::Struct(_) | Kind::Union(_)) && !one.name.is_empty()
    });
    let by_name = composite.map(|(id, one)| (one.name.as_str(), id)).collect();
    let mut maker = Maker {
        btf: &btf,
        by_name,
        left: Vec::new(),
        done: BTreeSet::new(),
    };
    let absent = ROOTS
        .split_whitespace()
        .filter(|name| !maker.by_name.contains_key(name));
    out.extend(absent.map(|name| format!("absent {name}")));
    let roots = ROOTS.split_whitespace();
    maker.left = roots
        .filter_map(|name| Some((name.to_owned(), *maker.by_name.get(name)?)))
        .collect();
    maker.structs(&mut out);
    let text = out.join("\n") + "\n";
    std::io::stdout()
        .write_all(text.as_bytes())
        .expect("standard output");
}
