//! How often the log is told of what goes wrong again and again: enough to see it, never a flood.

use std::time::{Duration, Instant};

/// Lines at once, before they become seldom.
const BURST: u32 = 5;
/// Then one in so long.
const INTERVAL: Duration = Duration::from_secs(600);
/// The same line again not sooner than this.
const SAME: Duration = Duration::from_secs(3_600);

/// The account of one source of lines, such as a server. Whoever fails a thousand times an hour, in a
/// thousand ways, gets eleven lines.
#[derive(Debug, Default)]
pub struct Quiet {
    /// The last line that was told, and when.
    last: Option<(String, Instant)>,
    /// Lines that count against the burst, and since when.
    used: u32,
    since: Option<Instant>,
    /// Lines that weren't told since the last one that was.
    held: u64,
}

impl Quiet {
    /// Whether to tell this line now; if so, how many weren't told since the last one that was.
    pub fn ask(&mut self, line: &str, now: Instant) -> Option<u64> {
        while self.used > 0
            && let Some(since) = self.since
            && now.saturating_duration_since(since) >= INTERVAL
        {
            self.used -= 1;
            self.since = Some(since + INTERVAL);
        }
        let again = self
            .last
            .as_ref()
            .is_some_and(|(last, at)| last == line && now.saturating_duration_since(*at) < SAME);
        if again || self.used == BURST {
            self.held += 1;
            return None;
        }
        if self.used == 0 {
            self.since = Some(now);
        }
        self.used += 1;
        self.last = Some((line.to_owned(), now));
        Some(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a line each second for some hours.
    fn told(hours: u64, line: impl Fn(u64) -> String) -> Vec<(u64, u64)> {
        let (mut quiet, begin) = (Quiet::default(), Instant::now());
        let seconds = 0..hours * 3_600;
        let at = |second| begin + Duration::from_secs(second);
        seconds.filter_map(|second| Some((second, quiet.ask(&line(second), at(second))?))).collect()
    }

    #[test]
    fn the_same_again_is_told_once_an_hour() {
        assert_eq!(told(3, |_| "gone".into()), [(0, 0), (3_600, 3_599), (7_200, 3_599)]);
    }

    #[test]
    fn many_kinds_are_told_a_few_at_once_and_then_seldom() {
        for kinds in [2, 3, u64::MAX] {
            let told = told(1, |second| format!("gone {}", second % kinds));
            let seconds: Vec<u64> = told.iter().map(|(second, _)| *second).collect();
            assert_eq!(seconds[..5], [0, 1, 2, 3, 4]);
            assert_eq!(seconds.len(), 10, "{seconds:?}");
            assert!(seconds[5..].windows(2).all(|pair| pair[1] - pair[0] >= 599), "{seconds:?}");
            let all = told.iter().map(|(_, held)| held + 1).sum::<u64>();
            assert_eq!(Some(&(all - 1)), seconds.last(), "none is forgotten");
        }
    }

    #[test]
    fn after_a_long_calm_all_is_told_at_once() {
        let (mut quiet, begin) = (Quiet::default(), Instant::now());
        for round in 0..3 {
            let now = begin + round * Duration::from_secs(86_400);
            for line in ["a", "b", "c", "d", "e"] {
                assert_eq!(quiet.ask(line, now), Some(0), "{line} of round {round}");
            }
            assert_eq!(quiet.ask("f", now), None);
            assert_eq!(quiet.ask("f", now + INTERVAL), Some(1));
        }
    }
}
