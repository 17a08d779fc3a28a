#![no_main]

use std::sync::LazyLock;

use resdex::fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("RESDEX_FUZZ_TARGET").expect("RESDEX_FUZZ_TARGET names a target");
    *TARGETS.iter().find(|target| target.name == name).expect("a target of that name")
});

/// Lays the seeds where libFuzzer begins.
fn sow() {
    let Ok(corpus) = std::env::var("RESDEX_FUZZ_CORPUS") else { return };
    for (at, seed) in TARGET.seeds.iter().enumerate() {
        std::fs::write(format!("{corpus}/seed-{at}"), seed).expect("the corpus can be written");
    }
}

libfuzzer_sys::fuzz_target!(
    init: sow(),
    |data: &[u8]| { (TARGET.run)(data) }
);
