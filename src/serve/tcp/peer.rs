//! Which user is at the other end of a connection within this machine, as the kernel's tables of
//! sockets tell it. On the Unix socket the kernel says so itself.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

/// The other end of one connection.
#[derive(Debug)]
pub struct Peer {
    theirs: SocketAddr,
    ours: SocketAddr,
    /// Looked for once, when first asked for.
    uid: OnceLock<Option<u32>>,
}

impl Peer {
    pub fn new(theirs: SocketAddr, ours: SocketAddr) -> Self {
        Self { theirs, ours, uid: OnceLock::new() }
    }

    /// Its user; nothing where that can't be told, as for who connects from another namespace.
    pub fn uid(&self) -> Option<u32> {
        // A client that speaks IPv6 is in the second table, with an IPv4 address mapped into its own.
        let look = |table| uid_in(&fs::read_to_string(table).ok()?, self.theirs, self.ours);
        *self.uid.get_or_init(|| ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(look))
    }
}

/// The user of the socket at `theirs` that is connected to `ours`, in a table as `proc_pid_net(5)` has it.
fn uid_in(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    // A socket whose owner is done with it is said to be root's.
    const ESTABLISHED: &str = "01";
    let is = |text: &str, address: SocketAddr| {
        parse(text) == Some((address.ip().to_canonical(), address.port()))
    };
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        let found = state == ESTABLISHED && is(local, theirs) && is(remote, ours);
        // In between: queues, timers, retransmissions.
        if found { fields.nth(3)?.parse().ok() } else { None }
    })
}

/// `0100007F:1F90`: words of four bytes in the machine's order, and the port.
fn parse(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| {
        let word = u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernels_table_tells_the_user() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100\n\
            \x20  1: 0100007F:C350 0100007F:1EC6 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20\n\
            \x20  2: 0100007F:C351 0100007F:1EC6 06 00000000:00000000 03:00000FA0 00000000     0        0 0 3 0\n\
            \x20  3: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:1EC6 01 \
            00000000:00000000 00:00000000 00000000  1003        0 4 1 0 20\n\
            \x20  4: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1EC6 01 \
            00000000:00000000 00:00000000 00000000  1004        0 5 1 0 20\n\
            \x20  5: broken\n";
        for (theirs, ours, uid) in [
            ("127.0.0.1:50000", "127.0.0.1:7878", Some(1001)),
            ("127.0.0.1:50001", "127.0.0.1:7878", None),
            ("127.0.0.1:50002", "127.0.0.1:7878", Some(1003)),
            ("[::1]:50000", "[::1]:7878", Some(1004)),
            ("127.0.0.1:50003", "127.0.0.1:7878", None),
            ("127.0.0.1:50000", "127.0.0.1:7879", None),
        ] {
            let found = uid_in(table, theirs.parse().unwrap(), ours.parse().unwrap());
            assert_eq!(found, uid.filter(|_| cfg!(target_endian = "little")), "{theirs} {ours}");
        }
    }

    #[test]
    fn a_connection_of_ours_is_ours() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // There may be no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = listener.local_addr().unwrap();
            let client = TcpStream::connect(ours).unwrap();
            let (_server, theirs) = listener.accept().unwrap();
            let peer = Peer::new(theirs, ours);
            assert_eq!(peer.uid(), Some(rustix::process::geteuid().as_raw()));
            // It is known from now on.
            drop(client);
            assert!(peer.uid().is_some());
        }
    }
}
