//! Connections, from whatever listener: a limit on how many, on how slow, and an end in order.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::quiet::Quiet;

/// How long a connection may take to send a request's head; one that is kept alive, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests in flight are waited for at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// Where connections come from.
pub trait Accept: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// What is known of the other end; each request of the connection carries it.
    type Peer: Clone + Send + Sync + 'static;

    /// The next connection; none for one that was refused.
    fn accept(&self)
    -> impl Future<Output = io::Result<Option<(Self::Stream, Self::Peer)>>> + Send;
}

/// Serves until `shutdown`, then waits for requests in flight, but not for long.
pub async fn serve(
    listener: &impl Accept,
    router: Router,
    connections: usize,
    shutdown: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(connections));
    let open = TaskTracker::new();
    let mut quiet = Quiet::default();
    loop {
        let accepted = async {
            // A place first: who finds none waits in the kernel's queue.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let ((stream, peer), place) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accepted => match accepted {
                Some((Ok(Some(accepted)), place)) => (accepted, place),
                Some((Ok(None), _)) => continue,
                Some((Err(error), _)) => {
                    if let Some(untold) = quiet.ask(&error.to_string(), Instant::now()) {
                        tracing::warn!(%error, untold, "a connection was not accepted");
                    }
                    // Out of file descriptors, most likely: some must be given back first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                None => break,
            },
        };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let ending = shutdown.clone();
        open.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = ending.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            // When who asks goes away, this ends, and with it what was being done for it.
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }
    open.close();
    if tokio::time::timeout(DRAIN, open.wait()).await.is_err() {
        tracing::warn!(open = open.len(), "requests were still running at the end");
    }
}
