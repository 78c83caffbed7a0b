//! Places of the machine that are no agent's business: system directories, devices, processes and the homes of other
//! users. The baseline allows nothing there; an operator's own rule can.
//!
//! Does not access the file system: the caller resolves symbolic links first.

use crate::protected::normalized_components;

/// Directories with programs and libraries. Everyone may read them.
const PROGRAMS: &[&str] =
    &["applications", "bin", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "snap", "usr"];
/// Directories with configuration, devices, processes and the state of the system.
const STATE: &[&str] =
    &["boot", "dev", "etc", "library", "proc", "root", "run", "sys", "system", "var"];
/// Directories below those for everyone's temporary files.
const TEMPORARY: &[[&str; 2]] = &[["dev", "shm"], ["var", "tmp"]];
/// Directories with a home for each user.
const HOMES: &[&str] = &["home", "users"];

/// Whether a path is in such a place. `home` has the components of the user's own home.
pub(crate) fn is_system_place(path: &str, writes: bool, home: &[String]) -> bool {
    let parts = normalized_components(path);
    let Some(first) = parts.first().map(String::as_str) else { return writes };
    if !home.is_empty() && parts.starts_with(home) {
        return false;
    }
    let is_temporary = TEMPORARY.iter().any(|[one, other]| {
        first == *one && parts.get(1).is_some_and(|second| second == other) && 2 < parts.len()
    });
    let is_system = STATE.contains(&first) || (writes && PROGRAMS.contains(&first));
    let is_others_home = HOMES.contains(&first);
    (is_system && !is_temporary) || is_others_home
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path in the home of a user.
    fn home(rest: &str) -> String {
        format!("/{}/{rest}", HOMES[0])
    }

    fn check(path: &str, reading: bool, writing: bool) {
        let own = normalized_components(&home("ada"));
        let found = (is_system_place(path, false, &own), is_system_place(path, true, &own));
        assert_eq!(found, (reading, writing), "{path}");
    }

    #[test]
    fn system_directories_devices_processes_and_other_homes_are_no_agents_business() {
        for path in [
            "/etc/cron.d/job",
            "/proc/1/environ",
            "/dev/sda",
            "/dev/shm",
            "/sys/power/state",
            "/var/spool/cron/ada",
            "/var/tmp",
            "/root",
            "/run/user/1000/bus",
            "/Library/LaunchDaemons/x.plist",
            "/ETC/passwd",
            "//etc/passwd",
            &home("bob/notes"),
            &home("ada2/notes"),
            &home(""),
        ] {
            check(path, true, true);
        }
        for path in ["/usr/include/stdio.h", "/bin/sh", "/lib64/x.so", "/opt/tool/bin/x", "/"] {
            check(path, false, true);
        }
        for path in [
            "/srv/ada/notes",
            "/tmp/x",
            "/var/tmp/x",
            "/dev/shm/x",
            "/data/etc/x",
            "/etcetera",
            &home("ada/notes"),
            &home("ada"),
        ] {
            check(path, false, false);
        }
    }

    #[test]
    fn own_home_may_be_in_a_system_directory() {
        let own = normalized_components("/var/lib/midwatch");
        assert!(!is_system_place("/var/lib/midwatch/x", true, &own));
        assert!(is_system_place("/var/lib/other/x", true, &own));
    }
}
