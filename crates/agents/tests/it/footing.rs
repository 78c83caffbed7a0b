//! What is found of a program before it is started: the very file that would be executed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use agents::AgentBackend;
use kernel::approval::Footing;
use kernel::backend::Settings;

use crate::world::{SECRET, World, command};

async fn look(world: &World, settings: Settings, word: &str) -> Result<Option<Footing>, String> {
    let agent = command(settings, &[word], "").agent;
    world.backends.footing(agent, "here".into()).await.map_err(|failure| failure.message)
}

/// What a file says of itself is what was executed.
#[tokio::test]
async fn the_file_that_is_found_is_the_one_that_is_executed() {
    let world = World::new();
    let (place, own) = (world.root().join("place"), "#!/bin/sh\nreadlink -f \"$0\"\n");
    fs::create_dir(&place).unwrap();
    for path in [world.root().join("tool"), place.join("tool")] {
        fs::write(&path, own).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }
    symlink(place.join("tool"), world.root().join("link")).unwrap();
    let in_place = || Settings { cwd: place.to_str().map(str::to_owned), ..Settings::default() };
    let absolute = place.join("tool").display().to_string();
    for (settings, word) in [
        (Settings::default(), "./tool"),
        (Settings::default(), "./link"),
        (Settings::default(), "place/tool"),
        (in_place(), "./tool"),
        (in_place(), "../tool"),
        (Settings::default(), absolute.as_str()),
    ] {
        let ended = world.run(command(settings.clone(), &[word], "")).await;
        let found = look(&world, settings, word).await.unwrap().unwrap().program;
        assert_eq!(found.path, ended.output.text.trim_end(), "{word}");
        assert_eq!(found.sha256.len(), 64);
    }
    let found = look(&world, Settings::default(), "sh").await.unwrap().unwrap();
    let real = ["/usr/local/bin/sh", "/usr/bin/sh"].iter().find_map(|it| fs::canonicalize(it).ok());
    assert_eq!(found.program.path, real.unwrap().display().to_string());
}

#[tokio::test]
async fn a_directory_and_variables_are_told_apart_and_not_told() {
    let world = World::new();
    let place = world.root().join("place");
    fs::create_dir(&place).unwrap();
    let cwd = place.to_str().map(str::to_owned);
    let env = vec!["SECRET".to_owned(), "UNSET".to_owned()];
    let settings = Settings { cwd, env, ..Settings::default() };
    let found = look(&world, settings.clone(), "true").await.unwrap().unwrap();
    assert_eq!(look(&world, settings, "true").await.unwrap().unwrap(), found);
    let names: Vec<&str> = found.parts().collect();
    assert_eq!(names, ["program", "directory", "HOME", "LANG", "PATH", "SECRET", "TZ"]);
    let directory = found.directory.clone().unwrap();
    assert_eq!(directory.inode, fs::metadata(&place).unwrap().ino().to_string());
    assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
    let agent = command(Settings::default(), &["true"], "").agent;
    let elsewhere = world.backends.footing(agent, "elsewhere".into()).await.unwrap().unwrap();
    assert_ne!(elsewhere.variables["PATH"], found.variables["PATH"]);
    assert_eq!((elsewhere.program, elsewhere.directory), (found.program, None));
}

#[tokio::test]
async fn what_cannot_be_started_has_no_footing() {
    let world = World::new();
    fs::write(world.root().join("text"), "no program").unwrap();
    let elsewhere = Settings { cwd: Some("/nowhere/at/all".into()), ..Settings::default() };
    for (settings, word, expected) in [
        (Settings::default(), "no-such-program", "there is no such program"),
        (Settings::default(), "./text", "there is no such program"),
        (Settings::default(), "/tmp", "there is no such program"),
        (elsewhere, "true", "there is no directory `/nowhere/at/all` to start in"),
    ] {
        let said = look(&world, settings, word).await.unwrap_err();
        assert!(said.contains(expected), "{word}: {said}");
    }
}

/// Rules see the program under the name by which it is found, and the directory that is really meant.
#[tokio::test]
async fn rules_see_the_command_line_and_where_it_is_started() {
    let world = World::new();
    let place = world.root().join("place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(place.join("tool"), Permissions::from_mode(0o700)).unwrap();
    symlink(&place, world.root().join("link")).unwrap();
    let root = world.root().canonicalize().unwrap().display().to_string();
    let details = |cwd: Option<&str>, words: &[&str]| {
        let cwd = cwd.map(|name| world.root().join(name).display().to_string());
        let agent = command(Settings { cwd, ..Settings::default() }, words, "a prompt").agent;
        let found = world.backends.details(&agent);
        assert_eq!((found.host, found.resource), (None, None));
        (found.path.unwrap().replace(&root, ""), found.argv.join(" ").replace(&root, ""))
    };
    let check = |cwd, words: &[&str], path: &str, argv: &str| {
        assert_eq!(details(cwd, words), (path.to_owned(), argv.to_owned()), "{words:?}");
    };
    check(Some("place"), &["./tool", "-x"], "/place", "/place/tool -x");
    // A link to a directory is that directory, and one to a program has its own name.
    check(Some("link"), &["/bin/sh", "-c"], "/place", "/bin/sh -c");
    check(Some("place"), &["../place/tool"], "/place", "/place/tool");
    check(None, &["place/tool"], "", "/place/tool");
    // What is not there has no name.
    check(None, &["no-such-tool", "-x"], "", "");
    let (_, sh) = details(None, &["sh"]);
    assert!(sh.starts_with('/') && sh.ends_with("/sh"), "{sh}");
}
