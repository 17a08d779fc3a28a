//! Which resources are to be read next.
//!
//! Two lines: *prompt* for what a server said has changed, *bulk* for what a plan wants read. They
//! take turns, so that neither starves the other. A URI that keeps changing is read at once, then at
//! most once per interval, and its last change is never lost. Pure: the clock is the caller's.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Uri;

/// Recent reads are forgotten when there are more of them than this, if they are old enough.
const RECENT: usize = 1_024;

/// Where a URI waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Prompt,
    Bulk,
}

#[derive(Debug)]
pub struct Dirty {
    interval: Duration,
    prompt: BTreeMap<(Instant, u64), Uri>,
    due: HashMap<Uri, (Instant, u64)>,
    bulk: VecDeque<Uri>,
    /// When a URI was last taken from the prompt line.
    recent: HashMap<Uri, Instant>,
    marks: u64,
    bulk_turn: bool,
}

impl Dirty {
    /// `interval` is the least time between two reads of one URI that notifications ask for.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            prompt: BTreeMap::new(),
            due: HashMap::new(),
            bulk: VecDeque::new(),
            recent: HashMap::new(),
            marks: 0,
            bulk_turn: false,
        }
    }

    /// A URI may have changed: it is to be read at once, or as soon as its interval allows.
    pub fn mark(&mut self, uri: Uri, now: Instant) {
        let at = self.recent.get(&uri).map_or(now, |read| now.max(*read + self.interval));
        self.mark_at(uri, at);
    }

    /// A URI is to be read at a time; an earlier mark of it stays.
    pub fn mark_at(&mut self, uri: Uri, at: Instant) {
        if let Some(earlier) = self.due.get(&uri) {
            if earlier.0 <= at {
                return;
            }
            self.prompt.remove(earlier);
        }
        self.marks += 1;
        self.due.insert(uri.clone(), (at, self.marks));
        self.prompt.insert((at, self.marks), uri);
    }

    /// What a plan wants read, in its order; takes the place of an earlier plan's rest.
    pub fn plan(&mut self, uris: impl IntoIterator<Item = Uri>) {
        self.bulk = uris.into_iter().collect();
    }

    /// Takes the next URI that may be read now, and says from which line.
    pub fn next(&mut self, now: Instant) -> Option<(Uri, Line)> {
        self.bulk_turn = !self.bulk_turn;
        let (uri, line) = match self.bulk_turn {
            true => self.next_bulk().or_else(|| self.next_prompt(now)),
            false => self.next_prompt(now).or_else(|| self.next_bulk()),
        }?;
        // Whichever line it came from, this read answers the mark as well.
        self.forget_mark(&uri);
        Some((uri, line))
    }

    fn next_bulk(&mut self) -> Option<(Uri, Line)> {
        Some((self.bulk.pop_front()?, Line::Bulk))
    }

    fn next_prompt(&mut self, now: Instant) -> Option<(Uri, Line)> {
        let first = self.prompt.first_entry().filter(|entry| entry.key().0 <= now)?;
        let uri = first.get().clone();
        if self.recent.len() > RECENT {
            self.recent.retain(|_, read| *read + self.interval > now);
        }
        self.recent.insert(uri.clone(), now);
        Some((uri, Line::Prompt))
    }

    /// A URI is not to be read any more.
    pub fn forget(&mut self, uri: &Uri) {
        self.forget_mark(uri);
        self.recent.remove(uri);
    }

    fn forget_mark(&mut self, uri: &Uri) {
        if let Some(due) = self.due.remove(uri) {
            self.prompt.remove(&due);
        }
    }

    /// When the next mark falls due; now, while a plan has something left.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        match self.bulk.is_empty() {
            false => Some(now),
            true => self.prompt.keys().next().map(|(at, _)| *at),
        }
    }

    /// How many reads wait, those included that aren't due yet.
    pub fn len(&self) -> usize {
        self.prompt.len() + self.bulk.len()
    }

    /// How many reads a plan has left.
    pub fn planned(&self) -> usize {
        self.bulk.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uri(at: usize) -> Uri {
        format!("a://{at}").into()
    }

    #[test]
    fn a_uri_that_keeps_changing_is_read_once_per_interval() {
        let start = Instant::now();
        let mut dirty = Dirty::new(Duration::from_secs(1));
        let mut reads = vec![];
        for tenth in 0..100 {
            let now = start + Duration::from_millis(100 * tenth);
            dirty.mark(uri(0), now);
            reads.extend(dirty.next(now).map(|_| tenth));
        }
        assert_eq!(reads, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        // The last change is still to be read.
        assert_eq!(dirty.next_due(start), Some(start + Duration::from_secs(10)));
    }

    #[test]
    fn neither_line_starves_the_other() {
        let now = Instant::now();
        let mut dirty = Dirty::new(Duration::ZERO);
        dirty.plan((0..5).map(uri));
        let mut order = vec![];
        for _ in 0..10 {
            dirty.mark(uri(9), now);
            order.extend(
                dirty.next(now).map(|(_, line)| if line == Line::Prompt { 'p' } else { 'b' }),
            );
        }
        assert_eq!(order.iter().collect::<String>(), "bpbpbpbpbp");
    }

    #[test]
    fn a_planned_read_answers_a_mark() {
        let now = Instant::now();
        let mut dirty = Dirty::new(Duration::from_secs(1));
        dirty.mark(uri(1), now);
        dirty.plan([uri(1)]);
        assert_eq!(dirty.next(now), Some((uri(1), Line::Bulk)));
        assert_eq!(dirty.next(now), None);
        assert_eq!(dirty.next_due(now), None);
    }

    proptest! {
        #[test]
        fn the_last_change_of_every_uri_is_read(marks in proptest::collection::vec((0_usize..5, 0_u64..300), 1..100)) {
            let start = Instant::now();
            let mut dirty = Dirty::new(Duration::from_millis(250));
            let (mut now, mut changed, mut read) = (start, HashMap::new(), HashMap::new());
            for (at, pause) in marks {
                now += Duration::from_millis(pause);
                dirty.mark(uri(at), now);
                changed.insert(uri(at), now);
                while let Some((uri, _)) = dirty.next(now) {
                    read.insert(uri, now);
                }
            }
            while let Some(due) = dirty.next_due(now) {
                now = now.max(due);
                let (uri, _) = dirty.next(now).expect("what is due can be taken");
                read.insert(uri, now);
            }
            for (uri, changed) in changed {
                prop_assert!(read[&uri] >= changed);
            }
        }
    }
}
