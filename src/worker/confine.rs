//! What a worker gives up before it sees a document, and what a document may cost it.

use std::fs;
use std::io;
use std::time::Duration;

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The system calls that memory, pipes and an orderly end need. All others fail with EPERM: no file,
/// socket or process can be opened or made.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_futex,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Gives up files, network and children for good. Says whether the system keeps to it: an old kernel
/// may have neither Landlock nor seccomp, and the limits alone stand then.
///
/// # Errors
/// A limit can't be set.
pub fn give_up_everything() -> io::Result<bool> {
    // No core, no file that grows, no further descriptor.
    for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    let locked = landlock().unwrap_or(false);
    let none = Rlimit { current: Some(3), maximum: Some(3) };
    setrlimit(Resource::Nofile, none)?;
    setrlimit(Resource::Nproc, Rlimit { current: Some(0), maximum: Some(0) })?;
    let filtered = seccomp().is_ok();
    Ok(locked || filtered)
}

fn landlock() -> Result<bool, landlock::RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn seccomp() -> Result<(), seccompiler::Error> {
    let filter = SeccompFilter::new(
        CALLS.iter().map(|call| (*call, vec![])).collect(),
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}

/// What a worker's program itself takes of the address space; read before files are given up.
pub fn own_size() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

/// Sets what the next document may cost: memory beyond `own_size`, and processor time.
///
/// # Errors
/// A limit can't be set.
pub fn allow(own_size: u64, memory: usize, time: Duration) -> io::Result<()> {
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let current = Some(maximum.map_or(most, |maximum| most.min(maximum)));
        setrlimit(resource, Rlimit { current, maximum })
    };
    limit(Resource::As, own_size + memory as u64)?;
    // In whole seconds since the worker's start.
    limit(Resource::Cpu, (cpu_time() + time).as_secs() + 1)?;
    Ok(())
}

/// Processor time of this process, in whole seconds.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::from_secs(time.tv_sec.cast_unsigned())
}
