//! A worker's own side: confined, it answers requests until its input ends.

use std::cell::RefCell;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use super::confine;
use super::frame::{self, Answer, Hello};
use crate::config::Limits;
use crate::extract::{self, Extraction};
use crate::model::{Resource, Snapshot};

/// Serves as a worker on stdin and stdout.
///
/// # Errors
/// The pipes', or that the limits can't be set.
pub fn run() -> io::Result<()> {
    // Whoever asks the daemon something goes first.
    let _ = rustix::process::nice(10);
    let own_size = confine::own_size();
    let confined = confine::give_up_everything()?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let version = env!("CARGO_PKG_VERSION").into();
    frame::write(&mut output, &Hello { version, confined })?;
    panic::set_hook(Box::new(|panic| {
        let message = panic.to_string().replace('\n', " ");
        LAST_PANIC.with(|last| *last.borrow_mut() = message);
    }));
    while let Some((resource, snapshot, limits)) =
        frame::read::<(Resource, Snapshot, Limits)>(&mut input)?
    {
        confine::allow(own_size, limits.extract_memory_bytes, limits.extract_timeout)?;
        let result =
            panic::catch_unwind(AssertUnwindSafe(|| answer(&resource, &snapshot, &limits)))
                .map_err(|_| LAST_PANIC.take());
        frame::write(&mut output, &Answer { result })?;
    }
    Ok(())
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn answer(resource: &Resource, snapshot: &Snapshot, limits: &Limits) -> Extraction {
    #[cfg(debug_assertions)]
    faults::commit(snapshot.contents.first().map_or("", |content| &content.uri));
    extract::extract(resource, snapshot, limits)
}

/// What a document could do at worst, done for the tests at the word of its content's URI. Nothing of
/// it is in a release.
#[cfg(debug_assertions)]
mod faults {
    use std::hint::black_box;
    use std::io::Write as _;

    pub fn commit(uri: &str) {
        match uri {
            "fault://panic" => {
                let nothing: &[u8] = black_box(&[]);
                black_box(nothing[black_box(3)]);
            }
            "fault://overflow" => {
                black_box(dive(black_box(1)));
            }
            "fault://hang" => loop {
                black_box(());
            },
            "fault://memory" => {
                let mut all = vec![];
                for _ in 0..1 << 16 {
                    all.push(black_box(vec![1_u8; 1 << 20]));
                }
            }
            "fault://output" => {
                let mut stdout = std::io::stdout();
                loop {
                    let _ = stdout.write_all(&[0xff; 4096]);
                }
            }
            "fault://file" => {
                let opened = std::fs::File::open("/proc/self/status").is_ok();
                let socket = std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
                let thread = std::thread::Builder::new().spawn(|| ()).is_ok();
                assert!(!(opened || socket || thread), "{opened} {socket} {thread}");
            }
            _ => {}
        }
    }

    #[expect(unconditional_recursion, reason = "the stack is to overflow")]
    fn dive(depth: u64) -> u64 {
        let room = black_box([depth; 512]);
        dive(depth.wrapping_add(room[511])).wrapping_add(room[0])
    }
}
