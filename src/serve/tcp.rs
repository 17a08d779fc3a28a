//! HTTP on TCP: off unless an address is given, and open to other machines only with tokens.

mod peer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use super::guard::Access;
use super::http::router_for;
use super::{App, listen};
pub use peer::Peer;

/// A TCP port that listens.
#[derive(Debug)]
pub struct Tcp {
    listener: TcpListener,
    address: SocketAddr,
}

impl Tcp {
    /// Listens at `HOST:PORT`. Whether that may be is the config's to say.
    ///
    /// # Errors
    /// The system's: the port is taken, or no such address is this machine's.
    pub async fn bind(listen: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then waits for requests in flight, but not for long.
    pub async fn serve(self, app: Arc<App>, connections: usize, shutdown: CancellationToken) {
        let ip = self.address.ip();
        let host = (!ip.is_unspecified()).then(|| match ip {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        });
        let access = Access::Tcp { loopback: ip.is_loopback(), host };
        // Streams of events are left as they are: a piece must not wait for the next one.
        let router = router_for(app, shutdown.clone(), access).layer(CompressionLayer::new());
        listen::serve(&self, router, connections, shutdown).await;
    }
}

impl listen::Accept for Tcp {
    type Stream = TcpStream;
    type Peer = Arc<Peer>;

    async fn accept(&self) -> io::Result<Option<(TcpStream, Arc<Peer>)>> {
        let (stream, address) = self.listener.accept().await?;
        // Answers are written whole, so there is nothing to wait for.
        stream.set_nodelay(true)?;
        let peer = Arc::new(Peer::new(address, stream.local_addr()?));
        Ok(Some((stream, peer)))
    }
}

#[cfg(test)]
mod tests;
