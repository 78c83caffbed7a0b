//! Whose entries are imported, if a source has entries of several users of the machine.

use super::LeftOut;

/// The users that matter to an import of commands.
#[derive(Clone, Copy, Debug)]
pub struct Users<'a> {
    /// The user whom the daemon runs as.
    pub own: &'a str,
    /// The user whose entries are wanted. Entries that name no user are theirs.
    pub named: Option<&'a str>,
    /// Whether the caller names an agent that runs commands as the named user.
    pub has_agent: bool,
}

impl Users<'_> {
    /// Refuses an entry of a user whom the agent does not run as.
    pub fn check(&self, owner: Option<&str>) -> Result<(), LeftOut> {
        let owner = owner.or(self.named).unwrap_or(self.own);
        match self.named {
            Some(named) if owner != named => {
                let reason = format!("it belongs to user `{owner}`, not to `{named}`");
                Err(LeftOut::new(reason, format!("import it with `--user {owner}`")))
            }
            Some(_) if self.has_agent => Ok(()),
            _ if owner == self.own => Ok(()),
            _ => Err(LeftOut::new(
                format!("it belongs to user `{owner}`, and Midwatch runs as `{}`", self.own),
                self.way_for(owner),
            )),
        }
    }

    /// How commands of another user can run. Programs of runs cannot gain privileges, so `sudo` works in none of them; only
    /// those of root can become another user.
    fn way_for(&self, owner: &str) -> String {
        let own_daemon = format!("run Midwatch as `{owner}` and import it there");
        match self.own {
            "root" => format!(
                "{own_daemon}; or register an agent that becomes `{owner}`, `midwatch agent add cron-{owner} \
                 --backend command -- runuser -u {owner} -- /bin/sh -s`, and import with `--user {owner} --agent \
                 cron-{owner}`"
            ),
            _ => own_daemon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_can_register_an_agent_that_becomes_another_user() {
        let hint = |own: &str| {
            let users = Users { own, named: None, has_agent: false };
            users.check(Some("www-data")).unwrap_err().hint
        };
        assert_eq!(hint("ada"), "run Midwatch as `www-data` and import it there");
        assert!(hint("root").contains("-- runuser -u www-data -- /bin/sh -s`"), "{}", hint("root"));
    }
}
