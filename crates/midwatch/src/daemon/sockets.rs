//! Who has hold of the other end of a TCP connection on this machine, as the kernel tells in `/proc`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The other end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) uid: u32,
    /// What a descriptor of it leads to.
    link: String,
}

/// `None` when the kernel does not know it, or nobody has hold of it any more.
pub(super) fn other_end(theirs: SocketAddr, ours: SocketAddr) -> Option<Socket> {
    let found = |table: &str, theirs, ours| {
        let table = fs::read_to_string(format!("/proc/self/net/{table}")).ok()?;
        find(&table, theirs, ours)
    };
    match theirs.is_ipv4() {
        true => found("tcp", theirs, ours).or_else(|| found("tcp6", mapped(theirs), mapped(ours))),
        false => found("tcp6", theirs, ours),
    }
}

/// Whether a process has hold of it. Each of its threads may have descriptors of its own; one that has gone has none.
pub(super) fn is_held_by(pid: i32, socket: &Socket) -> io::Result<bool> {
    for thread in listed(Path::new(&format!("/proc/{pid}/task")))? {
        for descriptor in listed(&thread.join("fd"))? {
            // One that was closed meanwhile is not it.
            let target = fs::read_link(descriptor);
            if target.is_ok_and(|target| target.as_os_str() == socket.link.as_str()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What is in a directory; nothing if it has gone.
fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
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
    let inode: u64 = fields.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Socket { uid, link: format!("socket:[{inode}]") })
}

/// As a program writes an address that speaks of all by the later protocol.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => (ip.to_ipv6_mapped(), address.port()).into(),
        IpAddr::V6(_) => address,
    }
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
            let another = Socket { link: "socket:[0]".to_owned(), ..socket };
            assert!(!is_held_by(pid, &another).unwrap());
            drop(theirs);
            assert_eq!(found(), None, "nobody has hold of it");
        }
    }
}
