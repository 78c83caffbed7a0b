//! Finds the processes that own the peer's end of a TCP connection on this machine, from `/proc`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The state of a listening socket, as the kernel writes it.
const LISTENING: &str = "0A";

/// The peer's socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) uid: u32,
    /// The target of the link of its descriptors in `/proc/PID/fd`.
    link: String,
}

/// Returns `None` when the kernel does not list the socket, or no process owns it any more.
pub(super) fn find_peer_socket(peer: SocketAddr, local: SocketAddr) -> Option<Socket> {
    let search = |table: &str, peer, local| {
        let table = fs::read_to_string(format!("/proc/self/net/{table}")).ok()?;
        find_socket(&table, peer, local)
    };
    match peer.is_ipv4() {
        true => {
            search("tcp", peer, local).or_else(|| search("tcp6", v4_mapped(peer), v4_mapped(local)))
        }
        false => search("tcp6", peer, local),
    }
}

/// The users whose processes listen on a port.
pub(crate) fn listeners(port: u16) -> Vec<u32> {
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/self/net/{table}")));
    let mut users: Vec<u32> = tables.iter().flatten().flat_map(|it| users_of(it, port)).collect();
    users.sort_unstable();
    users.dedup();
    users
}

fn users_of(table: &str, port: u16) -> impl Iterator<Item = u32> {
    let end = format!(":{port:04X}");
    table.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENING, _, _, _, user, ..] = fields.as_slice() else { return None };
        local.ends_with(&end).then(|| user.parse().ok()).flatten()
    })
}

/// Whether a process owns the socket. Each of its threads may have descriptors of its own; an exited process has none.
pub(super) fn is_owned_by(pid: i32, socket: &Socket) -> io::Result<bool> {
    for thread in list(Path::new(&format!("/proc/{pid}/task")))? {
        for descriptor in list(&thread.join("fd"))? {
            // A descriptor may have been closed meanwhile.
            let target = fs::read_link(descriptor);
            if target.is_ok_and(|target| target.as_os_str() == socket.link.as_str()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The entries of a directory; empty if it does not exist.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Finds a socket in a table of the kernel. A line has a number, the owner's address, the other address, the state,
/// three fields of queues and timers, the user, a timeout, and the inode.
fn find_socket(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<Socket> {
    let (local, remote) = (table_format(peer), table_format(local));
    let line = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next() == Some(&local) && fields.next() == Some(&remote);
        is_it.then_some(fields)
    });
    let mut fields = line?;
    let uid = fields.nth(4)?.parse().ok()?;
    let inode: u64 = fields.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Socket { uid, link: format!("socket:[{inode}]") })
}

/// An IPv4 address as a socket of both protocols has it: mapped to IPv6.
fn v4_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => (ip.to_ipv6_mapped(), address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// An address as the kernel writes it: 32-bit words in the machine's byte order, then the port.
fn table_format(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).filter_map(|word| <[u8; 4]>::try_from(word).ok());
    let words: String = words.map(|word| format!("{:08X}", u32::from_ne_bytes(word))).collect();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn listeners_are_found_by_their_port() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert_eq!(listeners(port), [rustix::process::getuid().as_raw()], "{address}");
            drop(listener);
            assert!(listeners(port).is_empty(), "{address}");
        }
    }

    #[test]
    fn peer_socket_has_an_owner_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, from) = listener.accept().unwrap();
            let found = || find_peer_socket(from, ours.local_addr().unwrap());
            let socket = found().unwrap();
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            assert!(is_owned_by(pid, &socket).unwrap());
            let another = Socket { link: "socket:[0]".to_owned(), ..socket };
            assert!(!is_owned_by(pid, &another).unwrap());
            drop(theirs);
            assert_eq!(found(), None, "the closed socket still has an owner");
        }
    }
}
