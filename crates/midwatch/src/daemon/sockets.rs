//! Who has hold of the other end of a TCP connection on this machine, as the kernel tells in `/proc`.

use std::net::{IpAddr, SocketAddr};
use std::{fs, io};

/// The other end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) uid: u32,
    inode: u64,
}

/// `None` when the kernel does not know it, or nobody has hold of it any more.
pub(super) fn other_end(theirs: SocketAddr, ours: SocketAddr) -> Option<Socket> {
    let table = if theirs.is_ipv4() { "/proc/self/net/tcp" } else { "/proc/self/net/tcp6" };
    find(&fs::read_to_string(table).ok()?, theirs, ours)
}

/// Whether a process has hold of it. Each of its threads may have descriptors of its own.
pub(super) fn is_held_by(pid: i32, socket: &Socket) -> io::Result<bool> {
    let link = format!("socket:[{}]", socket.inode);
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        for descriptor in fs::read_dir(thread?.path().join("fd"))? {
            // One that was closed meanwhile is not it.
            let target = fs::read_link(descriptor?.path());
            if target.is_ok_and(|target| target.as_os_str() == link.as_str()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A line has a number, both ends from where its owner sees them, the state, four of queues and timers, the user, one
/// more, and the inode.
fn find(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<Socket> {
    let (local, remote) = (in_table(theirs), in_table(ours));
    let line = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next() == Some(&local) && fields.next() == Some(&remote);
        is_it.then_some(fields)
    });
    let mut fields = line?;
    let uid = fields.nth(4)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Socket { uid, inode })
}

/// As the kernel writes an address: each word of it as a number of this machine, then the port.
fn in_table(address: SocketAddr) -> String {
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
    fn the_other_end_of_a_connection_is_ours_while_we_have_hold_of_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, from) = listener.accept().unwrap();
            let found = || other_end(from, ours.local_addr().unwrap());
            let socket = found().unwrap();
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            assert!(is_held_by(pid, &socket).unwrap());
            assert!(!is_held_by(pid, &Socket { inode: socket.inode + 1, ..socket }).unwrap());
            drop(theirs);
            assert_eq!(found(), None, "nobody has hold of it");
        }
    }
}
