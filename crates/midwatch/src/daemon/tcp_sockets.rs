//! Finds the processes that own the peer's end of a TCP connection on this machine, and those that listen at an address,
//! from `/proc`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::user_names::user_name;

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

/// A process that listens at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortHolder {
    pub(crate) uid: u32,
    /// The processes that have the socket, with the names of their programs. `/proc` hides those of other users from all but
    /// root.
    pub(crate) processes: Vec<(i32, String)>,
}

/// The processes that keep others from binding this address: they listen at it, or at all addresses.
pub(crate) fn port_holders(address: SocketAddr) -> Vec<PortHolder> {
    let places = occupying(address);
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/self/net/{table}")));
    let sockets = tables.iter().flatten().flat_map(|it| listening_sockets(it, &places));
    let mut holders: Vec<PortHolder> = Vec::new();
    for socket in sockets {
        let processes = owners_of(&socket);
        let holder = PortHolder { uid: socket.uid, processes };
        if !holders.contains(&holder) {
            holders.push(holder);
        }
    }
    holders
}

/// Prints the user by name, and the processes where they are known.
impl fmt::Display for PortHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match user_name(self.uid) {
            Some(name) => write!(out, "user `{name}`")?,
            None => write!(out, "uid {}", self.uid)?,
        }
        for (index, (pid, program)) in self.processes.iter().enumerate() {
            let separator = if index == 0 { " (" } else { ", " };
            write!(out, "{separator}pid {pid}, `{program}`")?;
        }
        out.write_str(if self.processes.is_empty() { "" } else { ")" })
    }
}

/// A text such as `user `ada` (pid 7, `nc`) and uid 1001`; `None` if no listener is known.
pub(crate) fn describe(holders: &[PortHolder]) -> Option<String> {
    let texts: Vec<String> = holders.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(" and "))
}

/// The processes that have the socket, as far as `/proc` shows them.
fn owners_of(socket: &Socket) -> Vec<(i32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let owners = pids.filter(|pid| is_owned_by(*pid, socket).unwrap_or(false));
    owners.map(|pid| (pid, program_name(pid))).collect()
}

/// The name of a program, without what would not be printed as it is.
fn program_name(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let is_shown = |letter: &char| letter.is_ascii_graphic() && *letter != '`';
    name.chars().filter(is_shown).collect()
}

/// The addresses, as the kernel writes them, at which a listener keeps others from binding this one.
fn occupying(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let all: SocketAddr = (Ipv6Addr::UNSPECIFIED, port).into();
    let mut places = vec![table_format(address), table_format(all)];
    if address.is_ipv4() {
        let all: SocketAddr = (Ipv4Addr::UNSPECIFIED, port).into();
        places.extend([all, v4_mapped(address)].map(table_format));
    }
    places
}

fn listening_sockets(table: &str, places: &[String]) -> impl Iterator<Item = Socket> {
    table.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENING, _, _, _, uid, _, inode, ..] = fields.as_slice() else {
            return None;
        };
        let is_there = places.iter().any(|place| place == local);
        let link = format!("socket:[{inode}]");
        is_there.then(|| Some(Socket { uid: uid.parse().ok()?, link })).flatten()
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
    fn port_holders_are_named_by_user_and_process() {
        let uid = rustix::process::getuid().as_raw();
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        for (listens_at, is_held, is_free) in [
            ("127.0.0.1:0", "127.0.0.1", Some("127.0.0.2")),
            ("[::1]:0", "::1", Some("127.0.0.1")),
            ("0.0.0.0:0", "127.0.0.1", Some("::1")),
            ("[::]:0", "127.0.0.1", None),
        ] {
            let listener = TcpListener::bind(listens_at).unwrap();
            let port = listener.local_addr().unwrap().port();
            let holders = |ip: &str| port_holders((ip.parse::<IpAddr>().unwrap(), port).into());
            let found = holders(is_held);
            let [PortHolder { uid: found_uid, processes }] = found.as_slice() else {
                panic!("{listens_at}: {found:?}")
            };
            assert_eq!(*found_uid, uid, "{listens_at}");
            let program = program_name(pid);
            assert_eq!(*processes, [(pid, program.clone())], "{listens_at}");
            let text = describe(&found).unwrap();
            assert!(text.ends_with(&format!(" (pid {pid}, `{program}`)")), "{text}");
            if let Some(other) = is_free {
                assert_eq!(holders(other), [], "{listens_at} holds {other}");
            }
            drop(listener);
            assert_eq!(holders(is_held), [], "{listens_at}");
        }
    }

    #[test]
    fn a_user_without_a_name_is_printed_by_number() {
        let holder = |uid| PortHolder { uid, processes: Vec::new() };
        assert_eq!(describe(&[holder(0)]).as_deref(), Some("user `root`"));
        let unknown = (1..).map(|it| u32::MAX - it).find(|uid| user_name(*uid).is_none()).unwrap();
        let expected = format!("user `root` and uid {unknown}");
        assert_eq!(describe(&[holder(0), holder(unknown)]), Some(expected));
        assert_eq!(describe(&[]), None);
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
