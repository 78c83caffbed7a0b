//! Output without what differs from run to run.

use crate::world::World;

/// Puts a word in brackets in the place of paths, instants, ids, keys, hashes and numbers of the machine.
pub(super) fn plain(world: &World, text: &str) -> String {
    let text = text.replace(&world.data().display().to_string(), "[DATA]");
    let text = text.replace(&world.root().display().to_string(), "[ROOT]");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let text = text.replace(calendar::tzdata_version(), "[TZDATA]");
    let mut rest = text.as_str();
    let mut out = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        let (word, length) = match FORMS.iter().find_map(|form| form.find(&out, rest)) {
            Some((word, length)) => (word, length),
            None => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        out.push_str(word);
        rest = &rest[length..];
    }
    out
}

/// What a varying part looks like: `d` a digit, `x` a hexadecimal digit, `b` one of base64, anything
/// else itself; then any number of `more`.
struct Form {
    word: &'static str,
    /// What must stand before it.
    after: &'static str,
    shape: &'static str,
    more: fn(char) -> bool,
}

const fn form(word: &'static str, after: &'static str, shape: &'static str) -> Form {
    Form { word, after, shape, more: |_| false }
}

const FORMS: &[Form] = &[
    Form {
        more: |c| c.is_ascii_digit() || ".Z".contains(c),
        ..form("[TIME]", "", "dddd-dd-ddTdd:dd:dd")
    },
    form("[ID]", "", "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
    form("[HASH]", "", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    Form { more: is_base64, ..form("+[KEY]", "[ID]", "+xxxxxxxx+") },
    Form { more: is_base64, ..form("[SIGNATURE]", "— midwatch/[ID] ", "") },
    form("[TREE ROOT]", "", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb="),
    form("[MICROSECONDS]", "", "dddddddddddddddd"),
    form("[MONTH]", "", "dddd-dd"),
    Form { more: is_digit, ..form("[PID]", "\"pid\": ", "d") },
    Form { more: is_digit, ..form("[PID]", "process ", "d") },
    Form { more: is_digit, ..form("[UID]", "uid:", "d") },
];

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=".contains(c)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

impl Form {
    fn find(&self, before: &str, rest: &str) -> Option<(&'static str, usize)> {
        if !before.ends_with(self.after) {
            return None;
        }
        let mut found = rest.chars();
        for shape in self.shape.chars() {
            let found = found.next()?;
            let fits = match shape {
                'd' => found.is_ascii_digit(),
                'b' => is_base64(found),
                'x' => matches!(found, '0'..='9' | 'a'..='f'),
                other => found == other,
            };
            if !fits {
                return None;
            }
        }
        let more: usize = found.take_while(|c| (self.more)(*c)).map(char::len_utf8).sum();
        let length = self.shape.len() + more;
        (0 < length).then_some((self.word, length))
    }
}
