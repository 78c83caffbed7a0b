//! The daemon's port is held by a process of another user: a start and `doctor` name it. Without root, the tests hold the
//! port as the user of the tests.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::world::{Daemon, World};

/// Listens at an address as user 65534, in a network of its own where that is allowed, then becomes our program. Writes
/// what it expects to be said about itself. Its variables: address, port, file.
const LISTEN_AS_ANOTHER_USER: &str = r#"
import ctypes, errno, fcntl, os, pwd, socket, struct, sys, time
address, port, file = sys.argv[1:4]
is_root = os.getuid() == 0
if is_root and ctypes.CDLL(None).unshare(0x40000000) == 0:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))
ready, is_ready = os.pipe()
until, lasts = os.pipe()
os.set_inheritable(lasts, True)
if os.fork() == 0:
    os.close(lasts)
    if is_root:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    deadline = time.monotonic() + 20
    while True:
        try:
            listener.bind((address, int(port)))
            listener.listen()
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE or deadline < time.monotonic():
                os._exit(1)
            time.sleep(0.01)
    try:
        user = "user `%s`" % pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = "uid %d" % os.getuid()
    program = open("/proc/self/comm").read().strip()
    text = "%d\n%s (pid %d, `%s`)" % (listener.getsockname()[1], user, os.getpid(), program)
    os.write(is_ready, text.encode())
    os.close(is_ready)
    os.read(until, 1)
    os._exit(0)
os.close(until)
os.close(is_ready)
said = os.read(ready, 1000).decode()
if not said:
    sys.exit("cannot listen on port " + port)
with open(file, "w") as written:
    written.write(said)
if port != "7400":
    os.environ["MIDWATCH_HTTP_LISTEN"] = "127.0.0.1:" + said.split("\n")[0]
os.execv(sys.argv[4], sys.argv[4:])
"#;

/// A command beside a listener of another user. Port 7400 is the default; another port is configured.
fn beside_listener(world: &World, (address, port): (&str, u16), arguments: &[&str]) -> Command {
    let mut command = world.wrapped("python3");
    if port == 7400 {
        command.env_remove("MIDWATCH_HTTP_LISTEN");
    }
    let file = world.root().join("listener");
    command.args(["-c", LISTEN_AS_ANOTHER_USER, address, &port.to_string()]).arg(file);
    command.arg(crate::support::world::PROGRAM).args(arguments);
    command
}

/// The port of the listener, and the text that names its process.
fn listener(world: &World) -> (String, String) {
    let written = fs::read_to_string(world.root().join("listener")).unwrap();
    let (port, text) = written.split_once('\n').unwrap();
    (port.to_owned(), text.to_owned())
}

#[test]
fn start_with_the_default_port_taken_warns_and_names_who_listens() {
    let world = World::new();
    let mut command = beside_listener(&world, ("127.0.0.1", 7400), &["up"]);
    let daemon = Daemon::start(&mut command);
    world.ok(&["status"]);
    let stderr = daemon.stop();
    let (_, text) = listener(&world);
    let warning = stderr.lines().find(|line| line.contains("the default port is taken"));
    let warning = warning.unwrap_or_else(|| panic!("{stderr}"));
    assert!(warning.contains(&text), "{text}: {warning}");
    assert!(warning.contains("http.listen"), "{warning}");
}

#[test]
fn start_with_a_configured_port_taken_fails_and_names_who_listens() {
    let world = World::new();
    let mut command = beside_listener(&world, ("127.0.0.1", 0), &["up"]);
    let (code, stderr) = Daemon::fails(&mut command);
    let (port, text) = listener(&world);
    assert_eq!(code, Some(1), "{stderr}");
    let expected = format!("cannot listen on 127.0.0.1:{port}: {text} listens there");
    assert!(stderr.contains(&expected), "{expected}: {stderr}");
    assert!(stderr.contains("end that process") && stderr.contains("http.listen"), "{stderr}");
    assert!(stderr.contains("[failed]"), "{stderr}");
}

#[test]
fn start_with_the_other_loopback_address_taken_warns_and_names_who_listens() {
    let world = World::new();
    let mut command = beside_listener(&world, ("::1", 0), &["up"]);
    let stderr = Daemon::start(&mut command).stop();
    let (port, text) = listener(&world);
    let warning = stderr.lines().find(|line| line.contains("the other loopback address"));
    let warning = warning.unwrap_or_else(|| panic!("{stderr}"));
    assert!(warning.contains(&format!("[::1]:{port}")), "{warning}");
    assert!(warning.contains(&text), "{text}: {warning}");
}

#[test]
fn doctor_names_who_listens_on_the_port_of_the_daemon() {
    let world = World::new();
    for (address, at) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
        let mut command = beside_listener(&world, (address, 0), &["--json", "doctor"]);
        let found = port_check(&mut command).unwrap();
        let (port, text) = listener(&world);
        assert_eq!(found["result"], "warning", "{found}");
        assert_eq!(found["detail"], json!(format!("{text} listens on {at}:{port}")));
        assert!(found["hint"].as_str().unwrap().contains("http.listen"), "{found}");
    }
}

#[test]
fn doctor_reports_another_process_of_this_user_but_not_the_daemon() {
    let mut world = World::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    world.set("MIDWATCH_HTTP_LISTEN", address.to_string());
    let doctor = |world: &World| port_check(world.command().args(["--json", "doctor"]));
    let found = doctor(&world).unwrap();
    let detail = found["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("pid {}, ", std::process::id())), "{found}");
    drop(other);
    assert_eq!(doctor(&world), None);
    let daemon = world.up();
    assert_eq!(doctor(&world), None);
    daemon.stop();
}

/// The check `port` of `doctor --json`; `None` if nothing was found.
fn port_check(command: &mut Command) -> Option<Value> {
    let output = command.output().unwrap();
    let doctor: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    doctor["checks"].as_array().unwrap().iter().find(|it| it["name"] == "port").cloned()
}
