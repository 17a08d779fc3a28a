//! Subscriptions, kept equal to a wanted set: URI by URI in the legacy era, one stream in the modern.

#![expect(deprecated, reason = "rmcp marks what only the legacy era has")]

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use rmcp::model::{
    ClientRequest, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequest, UnsubscribeRequestParams,
};
use rmcp::service::Subscription;
use tokio::task::AbortHandle;

use super::session::Session;
use crate::model::{Era, Uri};
use crate::source::SourceError;

/// What is subscribed to at present.
#[derive(Default)]
pub(super) struct Followed {
    uris: BTreeSet<Uri>,
    /// The task that drains the modern stream; aborting it ends the subscription.
    stream: Option<AbortOnDrop>,
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Subscribe requests in flight.
const IN_FLIGHT: usize = 16;

/// Failures in a row after which a server is left alone.
const ENOUGH: usize = 3;

impl Session {
    /// Subscribes to what is wanted and not yet subscribed to, and ends what isn't wanted any more.
    /// Does nothing for a server that doesn't offer subscriptions. Answers the URIs that could not be
    /// subscribed to.
    ///
    /// # Errors
    /// When the connection is gone, or the modern stream can't be opened.
    pub async fn follow(&self, wanted: &BTreeSet<Uri>) -> Result<Vec<Uri>, SourceError> {
        match self.era() {
            Era::Legacy => self.follow_one_by_one(wanted).await,
            Era::Modern => self.follow_by_stream(wanted).await.map(|()| vec![]),
        }
    }

    /// Forgets a stream that has ended, so that the next `follow` opens another.
    pub async fn forget_stream(&self) {
        self.0.followed.lock().await.stream = None;
    }

    async fn follow_one_by_one(&self, wanted: &BTreeSet<Uri>) -> Result<Vec<Uri>, SourceError> {
        // Offered is what is declared: some servers answer a subscription with an error and then
        // hang, so nothing is asked that isn't.
        if !self.push().contains("updated") {
            return Ok(vec![]);
        }
        let mut followed = self.0.followed.lock().await;
        let new: Vec<Uri> = wanted.difference(&followed.uris).cloned().collect();
        let gone: Vec<Uri> = followed.uris.difference(wanted).cloned().collect();
        let limit = self.0.limits.subscribe_timeout;
        let (mut failed, mut in_a_row) = (vec![], 0);
        let mut asked = stream::iter(new.iter().cloned())
            .map(|uri| async move {
                let request = SubscribeRequest::new(SubscribeRequestParams::new(&*uri));
                let request = ClientRequest::SubscribeRequest(request);
                let answer = self.request("resources/subscribe", request, limit).await;
                (uri, answer)
            })
            .buffer_unordered(IN_FLIGHT);
        while let Some((uri, answer)) = asked.next().await {
            match answer {
                Ok(_) => {
                    followed.uris.insert(uri);
                    in_a_row = 0;
                }
                Err(error @ SourceError::Disconnected { .. }) => return Err(error),
                Err(_) => {
                    failed.push(uri);
                    in_a_row += 1;
                }
            }
            if in_a_row >= ENOUGH {
                break;
            }
        }
        drop(asked);
        for uri in gone {
            let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(&*uri));
            let request = ClientRequest::UnsubscribeRequest(request);
            // A server that can't unsubscribe goes on to send hints, which are ignored.
            let _ = self.request("resources/unsubscribe", request, limit).await;
            followed.uris.remove(&uri);
        }
        if in_a_row >= ENOUGH {
            failed = new.into_iter().filter(|uri| !followed.uris.contains(uri)).collect();
        }
        Ok(failed)
    }

    async fn follow_by_stream(&self, wanted: &BTreeSet<Uri>) -> Result<(), SourceError> {
        let mut followed = self.0.followed.lock().await;
        if (followed.stream.is_some() && followed.uris == *wanted) || self.push().is_empty() {
            return Ok(());
        }
        let mut filter = SubscriptionFilter::new();
        filter.resources_list_changed = Some(true);
        filter.resource_subscriptions = Some(wanted.iter().map(|uri| uri.to_string()).collect());
        let limit = self.0.limits.subscribe_timeout;
        let what = "subscriptions/listen";
        let opened = tokio::time::timeout(limit, self.0.peer.listen(filter)).await;
        let subscription = match opened {
            Ok(Ok(subscription)) => subscription,
            Ok(Err(error)) => return Err(self.source_error(what, error)),
            Err(_) => {
                return Err(SourceError::TimedOut { what: what.into(), seconds: limit.as_secs() });
            }
        };
        let task = tokio::spawn(drain(subscription, self.0.hints.clone()));
        // The old stream ends only now, so that nothing is missed in between.
        followed.stream = Some(AbortOnDrop(task.abort_handle()));
        followed.uris.clone_from(wanted);
        Ok(())
    }
}

/// Waits for the stream's end. The framing layer has taken every push out of it before.
async fn drain(mut subscription: Subscription, hints: std::sync::Arc<super::hints::Hints>) {
    while let Ok(Some(_)) = subscription.next().await {}
    hints.stream_ended();
}
