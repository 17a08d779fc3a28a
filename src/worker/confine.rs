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
    let locked = landlock().is_ok_and(|status| status != RulesetStatus::NotEnforced);
    let none = Rlimit { current: Some(3), maximum: Some(3) };
    setrlimit(Resource::Nofile, none)?;
    setrlimit(Resource::Nproc, Rlimit { current: Some(0), maximum: Some(0) })?;
    let filtered = seccomp().is_ok();
    Ok(locked || filtered)
}

fn landlock() -> Result<RulesetStatus, landlock::RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
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

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "what is skipped is said")]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::thread;

    use super::*;

    /// Both hold for the thread that gives something up, so a thread tries each of them alone.
    fn alone<T: Send>(confined: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(confined).join().unwrap())
    }

    #[test]
    fn landlock_alone_holds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (status, opened, listed, bound, connected) = alone(|| {
            let status = landlock().unwrap();
            let opened = File::open("/proc/self/status").map(drop);
            let listed = fs::read_dir("/").map(drop);
            let bound = TcpListener::bind("127.0.0.1:0").map(drop);
            (status, opened, listed, bound, TcpStream::connect(address).map(drop))
        });
        if status == RulesetStatus::NotEnforced {
            println!("skipped: this kernel has no Landlock");
            return;
        }
        let is_refused = |tried: io::Result<()>| tried.is_err_and(|e| e.kind() == PermissionDenied);
        assert!(is_refused(opened) && is_refused(listed));
        // Kernels before 6.7 know of files only.
        if status == RulesetStatus::FullyEnforced {
            assert!(is_refused(bound) && is_refused(connected));
        } else {
            println!("connections skipped: this kernel's Landlock is an old one");
        }
    }

    #[test]
    fn seccomp_alone_holds() {
        let (filtered, opened, listed, bound, udp, started) = alone(|| {
            let filtered = seccomp().is_ok();
            let opened = File::open("/proc/self/status").map(drop);
            let listed = fs::read_dir("/").map(drop);
            let bound = TcpListener::bind("127.0.0.1:0").map(drop);
            let udp = UdpSocket::bind("127.0.0.1:0").map(drop);
            let started = std::process::Command::new("/bin/true").spawn().map(drop);
            (filtered, opened, listed, bound, udp, started)
        });
        if !filtered {
            println!("skipped: this kernel has no seccomp");
            return;
        }
        for tried in [opened, listed, bound, udp, started] {
            assert_eq!(tried.map_err(|error| error.kind()), Err(PermissionDenied));
        }
    }
}
