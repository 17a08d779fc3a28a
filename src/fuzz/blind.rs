//! Every target with inputs that are made of its seeds without looking at the coverage. The same number
//! gives the same inputs.
//!
//! `RESDEX_FUZZ_SECONDS` runs each for so long, `RESDEX_FUZZ_SEED` with other inputs. An input that breaks
//! something is printed as a literal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::{TARGETS, Target};

/// Inputs of each target, unless it is told how long.
const INPUTS: usize = 1_200;
/// Longest input, but for those that ask how the time grows.
const MAX: usize = 4 << 10;

/// What the inputs' grammars are made of, and what has been trouble elsewhere.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "1e999",
    "-0",
    "\\ud83d",
    "\\u0000",
    "\\",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "\0",
    "\u{1b}[",
    "\u{feff}",
    "\u{202e}",
    "\u{200d}",
    "\u{301}",
    "\u{85}",
    "\u{2028}",
    "\u{e0041}",
    "🏳\u{fe0f}\u{200d}🌈",
    "退款",
    "退款返金テスト",
    "한국어",
    "นโยบายการคืนเงิน",
    "ကခဂ",
    "ខ្មែរ",
    "ລາວ",
    "क्षत्रिय",
    "لا",
    "İ",
    "ß",
    "ﬁ",
    "①",
    "½",
    "# ",
    "## ",
    "```",
    "~~~",
    "| a | b |\n",
    "|---|---|\n",
    "- ",
    "> ",
    "<",
    ">",
    "</",
    "<!--",
    "-->",
    "<![CDATA[",
    "&amp;",
    "&#x10ffff;",
    "<table>",
    "<script>",
    "<!DOCTYPE",
    "---\n",
    "===",
    "${",
    "${A}",
    "${A:-",
    "${env:",
    "$",
    "{+x}",
    "{?x*}",
    "{x:99999}",
    "%2F",
    "%00",
    "%zz",
    "..",
    "//",
    "://",
    "@",
    "#",
    "?",
    "&",
    "=",
    "*",
    "**",
    "[!a]",
    "server:",
    "mime:",
    "uri:",
    "-\"",
    "“",
    "”",
    "「",
    "」",
    "id",
    "\"id\":",
    "jsonrpc",
    "uri",
    "999999999999999999999",
    "charset=",
    "utf-16le",
    "shift_jis",
    "gb18030",
    "iso-2022-jp",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `most`, which isn't 0.
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap_or_default()
    }

    /// Some bytes of an input: from, to.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let most = if self.below(4) == 0 { length - from } else { (length - from).min(16) };
        from..from + self.below(most + 1)
    }

    fn token(&mut self) -> &'static [u8] {
        TOKENS[self.below(TOKENS.len())].as_bytes()
    }

    fn input(&mut self, seeds: &[&str]) -> Vec<u8> {
        let seed = |random: &mut Self| seeds[random.below(seeds.len())].as_bytes();
        let mut input = match self.below(8) {
            0 => (0..self.below(40)).flat_map(|_| self.token()).copied().collect(),
            _ => seed(self).to_vec(),
        };
        for _ in 0..1 + self.below(8) {
            let range = self.range(input.len());
            match self.below(9) {
                0 => drop(input.drain(range)),
                1 => input = [&input[..range.end], &input[range.start..]].concat(),
                2 | 3 => drop(input.splice(range.start..range.start, self.token().iter().copied())),
                4 => drop(input.splice(range, self.token().iter().copied())),
                5 => {
                    let other = seed(self);
                    let part = self.range(other.len());
                    drop(input.splice(range, other[part].iter().copied()));
                }
                6 => {
                    let (piece, times) = (input[range.clone()].to_vec(), 1 + self.below(200));
                    drop(input.splice(range.start..range.start, piece.repeat(times)));
                }
                7 if !input.is_empty() => {
                    let at = self.below(input.len());
                    input[at] ^= 1 << self.below(8);
                }
                _ if !input.is_empty() => {
                    let at = self.below(input.len());
                    input[at] = self.next().to_le_bytes()[0];
                }
                _ => {}
            }
            input.truncate(MAX);
        }
        input
    }
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).expect("a target of that name")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().expect("a number"))
}

/// Runs a target, and shows the input when it breaks.
fn run(target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("{} breaks at b\"{}\"", target.name, input.escape_ascii());
    }
}

fn blind(name: &str) {
    let target = target(name);
    let mut random = Random(number("RESDEX_FUZZ_SEED").unwrap_or(1));
    for seed in target.seeds {
        run(target, seed.as_bytes());
    }
    let until =
        number("RESDEX_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut inputs = 0_usize;
    while until.map_or(inputs < INPUTS, |until| Instant::now() < until) {
        run(target, &random.input(target.seeds));
        inputs += 1;
    }
    eprintln!("{name}: {inputs} inputs");
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    Duration::from_nanos(stat.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"))
}

/// The time that one input takes.
fn cost(target: Target, input: &[u8]) -> Duration {
    let begun = cpu();
    run(target, input);
    cpu() - begun
}

/// What is repeated to ask how the time grows: what brackets, escapes, breaks and scripts are made of.
const UNITS: &[&str] = &[
    "a", " ", "\n", "\\u", "[", "{\"a\":", "\"", "<a>", "&", "${", "# a\n", "- ", "|", "`", "退",
    "ก", "\u{301}",
];

/// An input four times as long may take four times as long, and some more; not sixteen times.
fn grows_in_line(name: &str) {
    let target = target(name);
    // What is made once is made before.
    run(target, target.seeds[0].as_bytes());
    let (head, _) = target.seeds[0].split_once('\n').unwrap_or_default();
    for unit in target.seeds.iter().chain(UNITS) {
        let input = |bytes: usize| {
            // Behind a first line, which may say what the rest is.
            format!("{head}\n{}", unit.repeat((bytes / unit.len()).max(1))).into_bytes()
        };
        let (short, long) = (input(8 << 10), input(32 << 10));
        let mut took = Duration::ZERO;
        // What takes too long by chance doesn't three times.
        let in_line = (0..3).any(|_| {
            took = cost(target, &long);
            took < Duration::from_millis(100) || took < 10 * cost(target, &short)
        });
        assert!(in_line, "{name}: {unit:?} takes {took:?} when repeated to 32 KiB");
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn any_input() {
                super::blind(stringify!($name));
            }

            #[test]
            fn time() {
                super::grows_in_line(stringify!($name));
            }
        })*

        #[test]
        fn every_target_is_run() {
            assert!(TARGETS.iter().map(|target| target.name).eq([$(stringify!($name)),*]));
        }
    };
}

targets!(frames listings templates uris mime_types contents chunks terms configs queries bodies);
